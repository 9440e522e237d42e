// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

const (
	// plainEntries is how many entries status lists readably; more are compressed.
	plainEntries = 300

	// MaxEntries and maxBytes bound what is read back: an inventory is stored
	// where others may write, too. Twice the objects of a bundle fit, for the
	// inventory of an upgrade is the union of both revisions.
	MaxEntries = 100_000
	maxBytes   = 32 << 20
)

// Encode writes the inventory as it is kept in status. Equal inventories give
// equal bytes. An empty one without a target is nil.
func (i Inventory) Encode() (*v1alpha1.Inventory, error) {
	if i.Len() == 0 && i.Target == "" {
		return nil, nil
	}
	if i.Len() > MaxEntries {
		return nil, fmt.Errorf("encoding the inventory: %d objects are more than %d", i.Len(), MaxEntries)
	}
	entries := make([]v1alpha1.InventoryEntry, 0, i.Len())
	for _, entry := range i.Entries {
		entries = append(entries, encodeEntry(entry))
	}
	encoded := &v1alpha1.Inventory{Target: i.Target, Count: int32(len(entries))} //nolint:gosec // G115: bounded by MaxEntries above
	if len(entries) <= plainEntries {
		encoded.Entries = entries
		return encoded, nil
	}
	compressed, err := deflate(entries)
	if err != nil {
		return nil, fmt.Errorf("encoding the inventory: %w", err)
	}
	encoded.Compressed = compressed
	return encoded, nil
}

// Decode reads an inventory back. Whatever cannot be read is an error, never a
// shorter inventory: a lost entry would be an object that nobody owns.
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

// listed gives the entries of either form and checks their number.
func listed(encoded *v1alpha1.Inventory) ([]v1alpha1.InventoryEntry, error) {
	entries := encoded.Entries
	if len(encoded.Compressed) > 0 {
		if len(entries) > 0 {
			return nil, errors.New("entries are given both plain and compressed")
		}
		inflated, err := inflate(encoded.Compressed)
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

func deflate(entries []v1alpha1.InventoryEntry) ([]byte, error) {
	var buffer bytes.Buffer
	writer, err := zlib.NewWriterLevel(&buffer, zlib.DefaultCompression)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(json.NewEncoder(writer).Encode(entries), writer.Close()); err != nil {
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
		R: e.Rendered.String(), F: e.Fields.String(), S: e.Seen.String(),
	}
}

func decodeEntry(encoded v1alpha1.InventoryEntry) (Entry, error) {
	id, err := decodeID(encoded.ID)
	if err != nil {
		return Entry{}, err
	}
	if len(encoded.V) > longestName || !plainVersion(encoded.V) {
		return Entry{}, fmt.Errorf("%s: %.100q is not an API version", id, encoded.V)
	}
	entry := Entry{ID: id, Version: encoded.V}
	var errs [3]error
	entry.Rendered, errs[0] = decodeHash(encoded.R)
	entry.Fields, errs[1] = decodeHash(encoded.F)
	entry.Seen, errs[2] = decodeHash(encoded.S)
	if err := errors.Join(errs[:]...); err != nil {
		return Entry{}, fmt.Errorf("%s: %w", id, err)
	}
	return entry, nil
}

// plainVersion tells that the text is lower-case letters and digits only, as
// API versions are.
func plainVersion(text string) bool {
	for _, r := range text {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return false
		}
	}
	return true
}
