// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/adler32"
	"slices"
	"sync"
)

// blockEntries is how many entries are compressed together. A block does not refer to earlier ones, so that the blocks
// in which nothing changed are not compressed again; larger blocks would save one percent of the size.
const blockEntries = 512

// A compressed inventory is one zlib stream of the packed form: this header, the byte of the format, blocks that end at a byte,
// the end, and the checksum of all.
var (
	zlibHeader = []byte{0x78, 0x9c}
	// zlibStart is a stored deflate block of the byte of the format.
	zlibStart = []byte{0x00, 0x01, 0x00, 0xfe, 0xff, formatByte}
	// zlibEnd is an empty and final stored deflate block.
	zlibEnd = []byte{0x01, 0x00, 0x00, 0xff, 0xff}
)

// block is a run of entries in compressed form.
type block struct {
	entries  []Entry
	packed   []byte
	size     int    // not compressed
	expanded int    // the texts when they are decoded
	sum      uint32 // Adler-32 of the uncompressed bytes
}

// writers are *flate.Writer. A new one makes tables of 0.8 MiB, which costs more than compressing a small inventory.
var writers sync.Pool

// packBlocks compresses entries block by block. It copies the blocks that are the same at the same place in an earlier result.
func packBlocks(entries []Entry, before []block) ([]block, error) {
	blocks := make([]block, 0, len(entries)/blockEntries+1)
	writer, ok := writers.Get().(*flate.Writer)
	if !ok {
		var err error
		if writer, err = flate.NewWriter(nil, flate.DefaultCompression); err != nil {
			return nil, err
		}
	}
	defer writers.Put(writer)
	for part := range slices.Chunk(entries, blockEntries) {
		if at := len(blocks); at < len(before) && slices.Equal(before[at].entries, part) {
			blocks = append(blocks, before[at])
			continue
		}
		packed, err := packBlock(writer, part)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, packed)
	}
	return blocks, nil
}

func packBlock(writer *flate.Writer, entries []Entry) (block, error) {
	if err := check(entries); err != nil {
		return block{}, err
	}
	sections, expanded := pack(entries)
	made := block{entries: entries, expanded: expanded}
	var packed bytes.Buffer
	sum := adler32.New()
	writer.Reset(&packed)
	for _, section := range sections {
		_, err := writer.Write(section)
		if err = errors.Join(err, writer.Flush()); err != nil {
			return block{}, err
		}
		_, _ = sum.Write(section) // it never fails
		made.size += len(section)
	}
	made.packed, made.sum = packed.Bytes(), sum.Sum32()
	return made, nil
}

// joinBlocks makes one zlib stream of all blocks, and tells how much it takes when it is decoded.
func joinBlocks(blocks []block) (compressed []byte, size int) {
	compressed = slices.Concat(zlibHeader, zlibStart)
	sum := adler32.Checksum([]byte{formatByte})
	for _, b := range blocks {
		compressed = append(compressed, b.packed...)
		sum = combineAdler(sum, b.sum, b.size)
		size += b.size + b.expanded
	}
	compressed = append(compressed, zlibEnd...)
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

// compress encodes entries in the compressed form, with what can be reused of an earlier result.
func (l Limit) compress(entries []Entry, before []block) (compressed string, blocks []block, err error) {
	if len(entries) > MaxEntries {
		return "", nil, &TooLargeError{Count: len(entries), Limit: l.bytes()}
	}
	if blocks, err = packBlocks(entries, before); err != nil {
		return "", nil, err
	}
	joined, size := joinBlocks(blocks)
	if len(joined) > l.bytes() || size > maxBytes {
		return "", nil, &TooLargeError{Count: len(entries), Size: len(joined), Limit: l.bytes()}
	}
	return base64.StdEncoding.EncodeToString(joined), blocks, nil
}
