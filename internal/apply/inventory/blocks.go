// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/adler32"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// blockEntries is how many entries are compressed together. A block does not refer to earlier ones, so that the blocks
// in which nothing changed are not compressed again; larger blocks would save one percent of the size.
const blockEntries = 512

// A compressed inventory is one zlib stream of a JSON array: this header, blocks that end at a byte, the end, and the
// checksum of all. Versions that compress the array at once read it, and are read, as any other stream.
var (
	zlibHeader = []byte{0x78, 0x9c}
	// zlibEnd is a final stored deflate block of one byte: the closing bracket.
	zlibEnd = []byte{0x01, 0x01, 0x00, 0xfe, 0xff, ']'}
)

// block is a run of entries in compressed form.
type block struct {
	first   bool
	entries []Entry
	packed  []byte
	size    int    // not compressed
	sum     uint32 // Adler-32 of the uncompressed bytes
}

// packBlocks compresses entries block by block. It copies the blocks that are the same at the same place in an earlier result.
func packBlocks(entries []Entry, before []block) ([]block, error) {
	blocks := make([]block, 0, len(entries)/blockEntries+1)
	writer, err := flate.NewWriter(nil, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	for start := 0; start == 0 || start < len(entries); start += blockEntries {
		part := entries[start:min(start+blockEntries, len(entries))]
		if at := len(blocks); at < len(before) && slices.Equal(before[at].entries, part) {
			blocks = append(blocks, before[at])
			continue
		}
		packed, err := packBlock(writer, part, start == 0)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, packed)
	}
	return blocks, nil
}

func packBlock(writer *flate.Writer, entries []Entry, first bool) (block, error) {
	listed, err := encodeEntries(entries)
	if err != nil {
		return block{}, err
	}
	raw, err := json.Marshal(listed)
	if err != nil {
		return block{}, err
	}
	raw = raw[:len(raw)-1] // the bracket at the end is that of the last block
	if !first {
		raw[0] = ','
	}
	var packed bytes.Buffer
	writer.Reset(&packed)
	_, err = writer.Write(raw)
	if err = errors.Join(err, writer.Flush()); err != nil {
		return block{}, err
	}
	return block{first: first, entries: entries, packed: packed.Bytes(), size: len(raw), sum: adler32.Checksum(raw)}, nil
}

// joinBlocks makes one zlib stream of all blocks, and tells how long its content is.
func joinBlocks(blocks []block) (compressed []byte, size int) {
	compressed = slices.Clone(zlibHeader)
	sum := adler32.Checksum(nil)
	for _, b := range blocks {
		compressed = append(compressed, b.packed...)
		sum = combineAdler(sum, b.sum, b.size)
		size += b.size
	}
	compressed = append(compressed, zlibEnd...)
	sum = combineAdler(sum, adler32.Checksum([]byte{']'}), 1)
	return binary.BigEndian.AppendUint32(compressed, sum), size + 1
}

// combineAdler is the Adler-32 of two texts, one after the other, from those of each and the length of the second.
func combineAdler(first, second uint32, length int) uint32 {
	const mod = 65521
	low, high := uint64(first&0xffff), uint64(first>>16)
	all := low + uint64(second&0xffff) + mod - 1
	weighted := high + uint64(second>>16) + uint64(length%mod)*(low+mod-1) //nolint:gosec // a length is never negative
	return uint32(weighted%mod)<<16 | uint32(all%mod)
}

// encodeEntries encodes each entry, and verifies that it can be decoded.
func encodeEntries(entries []Entry) ([]v1alpha1.InventoryEntry, error) {
	listed := make([]v1alpha1.InventoryEntry, 0, len(entries))
	for _, entry := range entries {
		encoded := encodeEntry(entry)
		again, err := decodeEntry(encoded)
		if err != nil {
			return nil, fmt.Errorf("%.300q could not be read back: %w", entry.String(), err)
		}
		if again != entry {
			return nil, fmt.Errorf("%.300q would be read back as %.300q", entry.String(), again.String())
		}
		listed = append(listed, encoded)
	}
	return listed, nil
}

// encodeCompressed encodes entries in the compressed form, with what can be reused of an earlier result.
func (l Limit) encodeCompressed(i Inventory, before []block) (compressed string, blocks []block, err error) {
	if blocks, err = packBlocks(i.Entries, before); err != nil {
		return "", nil, err
	}
	joined, size := joinBlocks(blocks)
	if len(joined) > l.bytes() || size > maxBytes {
		return "", nil, &TooLargeError{Count: i.Len(), Size: len(joined), Limit: l.bytes()}
	}
	return base64.StdEncoding.EncodeToString(joined), blocks, nil
}
