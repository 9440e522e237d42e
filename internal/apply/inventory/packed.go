// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/internal/format"
)

// The packed form of entries is the byte of the format and blocks. A block is the number of its entries as a varint and columns, each with
// a value of every entry: two bytes of state, five texts, and the hashes that the first byte of state announces. Of a text only
// what differs from that of the entry before is stored: the lengths of the same part, those of the rest, and the rests.
// Hashes hardly compress, so that an entry with all of them takes 24 bytes and what is new in its name.
var formatByte = byte(format.Inventory.Version)

// Bits of the first byte of state: which hashes follow.
const (
	hasRendered = 1 << iota
	hasFields
	isUnrecorded // Fields is Unrecorded, and does not follow
	hasUID
	hasMoved

	presenceBits = 1<<iota - 1
)

// Bits of the second byte of state. The lowest ones are the place of the mark in marks.
const (
	markBits = 3
	isBegun  = 1 << 2
	isDone   = 1 << 3

	stateBits = markBits | isBegun | isDone
)

var marks = [markBits + 1]Mark{"", Unproven, Leaving, RunOnce}

// texts are the columns of text, in their order.
var texts = [...]func(*Entry) *string{
	func(e *Entry) *string { return &e.Group },
	func(e *Entry) *string { return &e.Kind },
	func(e *Entry) *string { return &e.Namespace },
	func(e *Entry) *string { return &e.Version },
	func(e *Entry) *string { return &e.Name },
}

// hashes are the columns of hashes, in their order.
var hashes = [...]struct {
	bit byte
	of  func(*Entry) []byte
}{
	{hasRendered, func(e *Entry) []byte { return e.Rendered[:] }},
	{hasFields, func(e *Entry) []byte { return e.Fields[:] }},
	{hasUID, func(e *Entry) []byte { return e.Seen[:seenUID] }},
	{hasMoved, func(e *Entry) []byte { return e.Seen[seenUID:] }},
}

// presence is the first byte of state.
func (e *Entry) presence() (bits byte) {
	for _, column := range hashes {
		if !empty(column.of(e)) {
			bits |= column.bit
		}
	}
	if e.Fields == Unrecorded {
		bits ^= hasFields | isUnrecorded
	}
	return bits
}

func empty(hash []byte) bool {
	return !slices.ContainsFunc(hash, func(b byte) bool { return b != 0 })
}

// state is the second byte of state.
func (e *Entry) state() byte {
	bits := byte(slices.Index(marks[:], e.Mark)) //nolint:gosec // of a valid entry
	if e.Begun {
		bits |= isBegun
	}
	if e.Done {
		bits |= isDone
	}
	return bits
}

// pack encodes valid entries as one block, in sections that are best compressed apart. expanded is how much the texts take when
// they are decoded.
func pack(entries []Entry) (sections [][]byte, expanded int) {
	head := binary.AppendUvarint(nil, uint64(len(entries)))
	present := make([]byte, len(entries))
	for i := range entries {
		present[i] = entries[i].presence()
	}
	head = append(head, present...)
	for i := range entries {
		head = append(head, entries[i].state())
	}
	for _, of := range texts {
		var size int
		head, size = packTexts(head, entries, of)
		expanded += size
	}
	sections = [][]byte{head}
	for _, column := range hashes {
		var section []byte
		for i := range entries {
			if present[i]&column.bit != 0 {
				section = append(section, column.of(&entries[i])...)
			}
		}
		if len(section) > 0 {
			sections = append(sections, section)
		}
	}
	return sections, expanded
}

// packTexts appends a column of texts.
func packTexts(to []byte, entries []Entry, of func(*Entry) *string) (column []byte, expanded int) {
	var rests []byte
	lengths := make([]byte, len(entries))
	last := ""
	for i := range entries {
		text := *of(&entries[i])
		same := commonPrefix(last, text)
		to = append(to, byte(same))         //nolint:gosec // a valid text is shorter than 256 bytes
		lengths[i] = byte(len(text) - same) //nolint:gosec // see above
		rests = append(rests, text[same:]...)
		if text != last {
			expanded += len(text)
		}
		last = text
	}
	return append(append(to, lengths...), rests...), expanded
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

var errShort = errors.New("the packed entries end too early")

// unpack decodes what pack encoded, after the byte of the format, and validates the entries.
func unpack(packed []byte) ([]Entry, error) {
	switch {
	case len(packed) == 0:
		return nil, errShort
	case packed[0] != formatByte:
		return nil, &format.AnotherVersionError{Format: format.Inventory, Found: int(packed[0])}
	}
	u := unpacker{rest: packed[1:], left: maxBytes}
	var entries []Entry
	for len(u.rest) > 0 {
		count, size := binary.Uvarint(u.rest)
		if size <= 0 || count == 0 || count > uint64(MaxEntries-len(entries)) { //nolint:gosec // never negative
			return nil, fmt.Errorf("a block of %d packed entries after %d", count, len(entries))
		}
		u.rest = u.rest[size:]
		block := make([]Entry, count)
		if err := u.block(block); err != nil {
			return nil, err
		}
		if err := check(block); err != nil {
			return nil, err
		}
		entries = append(entries, block...)
	}
	return entries, nil
}

// unpacker reads packed entries.
type unpacker struct {
	rest []byte
	left int // how many bytes of text may still be decoded
}

func (u *unpacker) take(n int) ([]byte, error) {
	if n > len(u.rest) {
		return nil, errShort
	}
	taken := u.rest[:n]
	u.rest = u.rest[n:]
	return taken, nil
}

// block reads all columns of the entries.
func (u *unpacker) block(entries []Entry) error {
	present, err := u.take(len(entries))
	if err != nil {
		return err
	}
	if err := u.states(entries); err != nil {
		return err
	}
	for _, of := range texts {
		if err := u.texts(entries, of); err != nil {
			return err
		}
	}
	for _, column := range hashes {
		for i := range entries {
			if present[i]&column.bit == 0 {
				continue
			}
			hash, err := u.take(len(column.of(&entries[i])))
			if err != nil {
				return err
			}
			if empty(hash) {
				return fmt.Errorf("%s: a hash is announced, and there is none", entries[i].ID)
			}
			copy(column.of(&entries[i]), hash)
		}
	}
	for i, bits := range present {
		switch {
		case bits&^presenceBits != 0, bits&(hasFields|isUnrecorded) == hasFields|isUnrecorded:
			return fmt.Errorf("%s: %#x is not a state", entries[i].ID, bits)
		case bits&isUnrecorded != 0:
			entries[i].Fields = Unrecorded
		}
	}
	return nil
}

func (u *unpacker) states(entries []Entry) error {
	states, err := u.take(len(entries))
	if err != nil {
		return err
	}
	for i, bits := range states {
		if bits&^stateBits != 0 {
			return fmt.Errorf("%#x is not a state", bits)
		}
		entries[i].Mark, entries[i].Begun, entries[i].Done = marks[bits&markBits], bits&isBegun != 0, bits&isDone != 0
	}
	return nil
}

func (u *unpacker) texts(entries []Entry, of func(*Entry) *string) error {
	lengths, err := u.take(2 * len(entries))
	if err != nil {
		return err
	}
	same, more := lengths[:len(entries)], lengths[len(entries):]
	last := ""
	for i := range entries {
		rest, err := u.take(int(more[i]))
		if err != nil {
			return err
		}
		if int(same[i]) > len(last) {
			return fmt.Errorf("%d bytes of a text of %d are used again", same[i], len(last))
		}
		if len(rest) > 0 || int(same[i]) < len(last) {
			last = last[:same[i]] + string(rest)
			if u.left -= len(last); u.left < 0 {
				return fmt.Errorf("more than %d bytes when unpacked", maxBytes)
			}
		}
		*of(&entries[i]) = last
	}
	return nil
}
