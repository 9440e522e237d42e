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
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

const (
	// plainEntries is how many entries status lists readably; more are compressed.
	plainEntries = 300

	// MaxEntries and maxBytes bound what is decoded: an inventory is stored
	// where other users may write, too. The inventory of an upgrade is the union of both revisions.
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
	return fmt.Sprintf("%d objects take %d KiB in the inventory, more than the status can hold (%d objects, %d KiB): split the bundle and deploy its parts by several BundleDeployments (while a revision replaces objects of the last one, both are listed)",
		e.Count, e.Size>>10, MaxEntries, e.Limit>>10)
}

// Encode writes the inventory for the status. Equal inventories give
// equal bytes. An empty one without a target is nil. An inventory that Decode would refuse is
// not written, as its objects could never be deleted. If it is too large, the entries of
// objects that wait for their removal are written without what only another apply of these
// would use: see Unrecorded. The error is a *TooLargeError when it is too large nevertheless.
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
	encoded.Compressed, blocks, err = l.compressReduced(i.Entries, before)
	return encoded, blocks, err
}

// readable encodes entries, and returns them as JSON too.
func readable(entries []Entry) (listed []v1alpha1.InventoryEntry, raw []byte, err error) {
	if err = check(entries); err != nil {
		return nil, nil, err
	}
	listed = make([]v1alpha1.InventoryEntry, 0, len(entries))
	for _, entry := range entries {
		listed = append(listed, encodeEntry(entry))
	}
	raw, err = json.Marshal(listed)
	return listed, raw, err
}

// check tells whether entries are those of objects that an API server would accept. Others are neither written nor read.
func check(entries []Entry) error {
	for i := range entries {
		e := &entries[i]
		checked := i > 0 && entries[i-1].Version == e.Version
		switch {
		case !e.plausible():
			return fmt.Errorf("%.300q does not name an object", e.String())
		case e.Version != "" && !checked && len(validation.IsDNS1035Label(e.Version)) > 0:
			return fmt.Errorf("%.300q: %.100q is not an API version", e.String(), e.Version)
		case !slices.Contains(marks[:], e.Mark):
			return fmt.Errorf("%.300q: %.32q is no mark of an object", e.String(), e.Mark)
		}
	}
	return nil
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
	entries, err := listed(encoded)
	if err != nil {
		return Inventory{}, fmt.Errorf("decoding the inventory: %w", err)
	}
	decoded := New(encoded.Target, entries...)
	if decoded.Len() != len(entries) {
		return Inventory{}, errors.New("decoding the inventory: an object is listed twice")
	}
	return decoded, nil
}

// listed returns the entries of either form and checks their number.
func listed(encoded *v1alpha1.Inventory) (entries []Entry, err error) {
	switch {
	case encoded.Compressed == "":
		entries, err = decodeEntries(encoded.Entries)
	case len(encoded.Entries) > 0:
		err = errors.New("entries are given both plain and compressed")
	default:
		entries, err = decompress(encoded.Compressed)
	}
	if err == nil && int(encoded.Count) != len(entries) {
		err = fmt.Errorf("%d objects are listed, %d are announced", len(entries), encoded.Count)
	}
	return entries, err
}

// decompress decodes the compressed form.
func decompress(encoded string) ([]Entry, error) {
	compressed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("the compressed entries are not base64: %w", err)
	}
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
	return unpack(raw)
}

// decodeEntries decodes the readable form.
func decodeEntries(listed []v1alpha1.InventoryEntry) ([]Entry, error) {
	if len(listed) > MaxEntries {
		return nil, fmt.Errorf("%d objects are more than %d", len(listed), MaxEntries)
	}
	entries := make([]Entry, 0, len(listed))
	for i := range listed {
		entry, err := decodeEntry(listed[i])
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
		entries = append(entries, entry)
	}
	return entries, check(entries)
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
	entry := Entry{ID: id, Version: encoded.V, Mark: Mark(encoded.M), Begun: encoded.B, Done: encoded.D}
	var errs [3]error
	entry.Rendered, errs[0] = decodeHash(encoded.R)
	entry.Fields, errs[1] = decodeHash(encoded.F)
	entry.Seen, errs[2] = decodeHash(encoded.S)
	if err := errors.Join(errs[:]...); err != nil {
		return Entry{}, fmt.Errorf("%s: %w", id, err)
	}
	return entry, nil
}
