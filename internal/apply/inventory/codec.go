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

	// maxEncoded bounds what is stored: base64 makes a MiB of it, and etcd's limit is
	// one and a half for the whole object.
	maxEncoded = 768 << 10
)

// Limit is how many bytes the entries may take in a status; 768 KiB when 0.
type Limit int

func (l Limit) bytes() int {
	if l <= 0 {
		return maxEncoded
	}
	return int(l)
}

// planned is the part of the limit that a plan may use: flags and marks come and go while
// it is executed.
func (l Limit) planned() Limit { return Limit(l.bytes() - l.bytes()/32) }

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
	if i.Len() == 0 && i.Target == "" {
		return nil, nil
	}
	entries, err := i.encodeEntries(l)
	if err != nil {
		return nil, fmt.Errorf("encoding the inventory: %w", err)
	}
	encoded := &v1alpha1.Inventory{Target: i.Target, Count: int32(len(entries))} //nolint:gosec // G115: bounded by MaxEntries
	raw, err := json.Marshal(entries)
	if err != nil {
		return nil, fmt.Errorf("encoding the inventory: %w", err)
	}
	if len(entries) <= plainEntries && len(raw) <= l.bytes() {
		encoded.Entries = entries
		return encoded, nil
	}
	compressed, err := deflate(raw)
	if err != nil {
		return nil, fmt.Errorf("encoding the inventory: %w", err)
	}
	if len(compressed) > l.bytes() || len(raw) > maxBytes {
		return nil, fmt.Errorf("encoding the inventory: %w", &TooLargeError{Count: i.Len(), Size: len(compressed), Limit: l.bytes()})
	}
	encoded.Compressed = base64.StdEncoding.EncodeToString(compressed)
	return encoded, nil
}

// encodeEntries encodes each entry, and verifies that it can be decoded.
func (i Inventory) encodeEntries(l Limit) ([]v1alpha1.InventoryEntry, error) {
	if i.Len() > MaxEntries {
		return nil, &TooLargeError{Count: i.Len(), Limit: l.bytes()}
	}
	if New(i.Target, i.Entries...).Len() != i.Len() {
		return nil, errors.New("an object is listed twice")
	}
	entries := make([]v1alpha1.InventoryEntry, 0, i.Len())
	for _, entry := range i.Entries {
		encoded := encodeEntry(entry)
		again, err := decodeEntry(encoded)
		if err != nil {
			return nil, fmt.Errorf("%.300q could not be read back: %w", entry.String(), err)
		}
		if again != entry {
			return nil, fmt.Errorf("%.300q would be read back as %.300q", entry.String(), again.String())
		}
		entries = append(entries, encoded)
	}
	return entries, nil
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

func deflate(raw []byte) ([]byte, error) {
	var buffer bytes.Buffer
	writer := zlib.NewWriter(&buffer)
	if _, err := writer.Write(raw); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
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
