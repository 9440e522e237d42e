// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

const (
	// plainEntries is how many entries status lists readably; more are compressed.
	plainEntries = 300

	// MaxEntries and maxBytes bound what is decoded: an inventory is stored
	// where other users may write, too. Twice the objects of a bundle fit, for the
	// inventory of an upgrade is the union of both revisions.
	MaxEntries = 100_000
	maxBytes   = 32 << 20

	// maxEncoded is the limit where the rest of the object is not known: base64 makes 1 MiB of it.
	maxEncoded = 768 << 10
)

// Limit is how many bytes the entries may take in a status, before they are encoded in base64; 768 KiB when 0.
type Limit int

func (l Limit) bytes() int {
	if l <= 0 {
		return maxEncoded
	}
	return int(l)
}

// slack is the part of a limit that a plan leaves: flags and marks come and go while it is executed.
const slack = 32

// planned is the part of the limit that a plan may use.
func (l Limit) planned() Limit { return Limit(l.bytes() - l.bytes()/slack) }

// TooLargeError says that an inventory does not fit into the status. The bundle has
// to be split: an object may be applied only if it can be recorded.
type TooLargeError struct {
	Count int // of objects
	Size  int // in bytes as they would be stored
	Limit int // of such bytes
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%d objects take %d KiB in the inventory, more than the status can hold (%d objects, %d KiB): split the bundle and deploy its parts by several BundleDeployments (while a revision replaces objects of the last one, both count)",
		e.Count, e.Size>>10, MaxEntries, e.Limit>>10)
}

// Encode writes the inventory for the status. Equal inventories give
// equal bytes. An empty one without a target is nil. An inventory that Decode would refuse is
// not written, as its objects could never be deleted. The error is a *TooLargeError
// when it is too large.
func (i Inventory) Encode() (*v1alpha1.Inventory, error) { return Limit(0).Encode(i) }

// Encode is Inventory.Encode with this limit.
func (l Limit) Encode(i Inventory) (*v1alpha1.Inventory, error) {
	encoded, _, err := l.encode(i, nil)
	return encoded, err
}

// encode also returns the blocks of the compressed form, and reuses those of an earlier result.
func (l Limit) encode(i Inventory, before []block) (encoded *v1alpha1.Inventory, blocks []block, err error) {
	if i.Len() == 0 && i.Target == "" {
		return nil, nil, nil
	}
	if encoded, blocks, err = l.encodeListed(i, before); err != nil {
		return nil, nil, fmt.Errorf("encoding the inventory: %w", err)
	}
	return encoded, blocks, nil
}

func (l Limit) encodeListed(i Inventory, before []block) (encoded *v1alpha1.Inventory, blocks []block, err error) {
	if i.Len() > MaxEntries {
		return nil, nil, &TooLargeError{Count: i.Len(), Limit: l.bytes()}
	}
	if i.repeats() {
		return nil, nil, errors.New("an object is listed twice")
	}
	encoded = &v1alpha1.Inventory{Target: i.Target, Count: int32(i.Len())} //nolint:gosec // G115: bounded by MaxEntries
	if i.Len() <= plainEntries {
		entries, raw, err := readable(i.Entries)
		if err != nil {
			return nil, nil, err
		}
		if len(raw) <= l.bytes() {
			encoded.Entries = entries
			return encoded, nil, nil
		}
	}
	encoded.Compressed, blocks, err = l.encodeCompressed(i, before)
	return encoded, blocks, err
}

// readable encodes entries, and returns them as JSON too.
func readable(entries []Entry) (listed []v1alpha1.InventoryEntry, raw []byte, err error) {
	if listed, err = encodeEntries(entries); err != nil {
		return nil, nil, err
	}
	raw, err = json.Marshal(listed)
	return listed, raw, err
}

// repeats tells whether an object is listed twice.
func (i Inventory) repeats() bool {
	for at := 1; at < i.Len(); at++ {
		if i.Entries[at-1].Compare(i.Entries[at].ID) >= 0 {
			return New(i.Target, i.Entries...).Len() != i.Len() // unless they are only not sorted
		}
	}
	return false
}

// Decode decodes an inventory. An unreadable entry is an error, never a
// shorter inventory: the object of a lost entry would have no owner.
func Decode(encoded *v1alpha1.Inventory) (Inventory, error) {
	if encoded == nil {
		return Inventory{}, nil
	}
	listed, err := listed(encoded)
	if err != nil {
		return Inventory{}, fmt.Errorf("decoding the inventory: %w", err)
	}
	entries := make([]Entry, 0, len(listed))
	for i := range listed {
		entry, err := decodeEntry(listed[i])
		if err != nil {
			return Inventory{}, fmt.Errorf("decoding the inventory: entry %d: %w", i, err)
		}
		entries = append(entries, entry)
	}
	decoded := New(encoded.Target, entries...)
	if decoded.Len() != len(listed) {
		return Inventory{}, errors.New("decoding the inventory: an object is listed twice")
	}
	return decoded, nil
}

// listed returns the entries of either form and checks their number.
func listed(encoded *v1alpha1.Inventory) ([]v1alpha1.InventoryEntry, error) {
	entries := encoded.Entries
	if len(encoded.Compressed) > 0 {
		if len(entries) > 0 {
			return nil, errors.New("entries are given both plain and compressed")
		}
		compressed, err := base64.StdEncoding.DecodeString(encoded.Compressed)
		if err != nil {
			return nil, fmt.Errorf("the compressed entries are not base64: %w", err)
		}
		inflated, err := inflate(compressed)
		if err != nil {
			return nil, err
		}
		entries = inflated
	}
	if len(entries) > MaxEntries {
		return nil, fmt.Errorf("%d objects are more than %d", len(entries), MaxEntries)
	}
	if int(encoded.Count) != len(entries) {
		return nil, fmt.Errorf("%d objects are listed, %d are announced", len(entries), encoded.Count)
	}
	return entries, nil
}

func inflate(compressed []byte) ([]v1alpha1.InventoryEntry, error) {
	reader, err := zlib.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(reader, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	if len(raw) > maxBytes {
		return nil, fmt.Errorf("more than %d bytes when decompressed", maxBytes)
	}
	var entries []v1alpha1.InventoryEntry
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, fmt.Errorf("reading the decompressed entries: %w", err)
	}
	return entries, nil
}

func encodeEntry(e Entry) v1alpha1.InventoryEntry {
	return v1alpha1.InventoryEntry{
		ID: e.encode(), V: e.Version,
		R: e.Rendered.String(), F: e.Fields.String(), S: e.Seen.String(), M: string(e.Mark), B: e.Begun, D: e.Done,
	}
}

func decodeEntry(encoded v1alpha1.InventoryEntry) (Entry, error) {
	id, err := decodeID(encoded.ID)
	if err != nil {
		return Entry{}, err
	}
	if encoded.V != "" && len(validation.IsDNS1035Label(encoded.V)) > 0 {
		return Entry{}, fmt.Errorf("%s: %.100q is not an API version", id, encoded.V)
	}
	entry := Entry{ID: id, Version: encoded.V, Begun: encoded.B, Done: encoded.D}
	var errs [4]error
	entry.Rendered, errs[0] = decodeHash(encoded.R)
	entry.Fields, errs[1] = decodeHash(encoded.F)
	entry.Seen, errs[2] = decodeHash(encoded.S)
	entry.Mark, errs[3] = decodeMark(encoded.M)
	if err := errors.Join(errs[:]...); err != nil {
		return Entry{}, fmt.Errorf("%s: %w", id, err)
	}
	return entry, nil
}
