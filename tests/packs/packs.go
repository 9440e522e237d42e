// SPDX-License-Identifier: Apache-2.0

// Package packs makes packs of Git objects, sound and odd ones, for tests.
package packs

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"

	"github.com/go-git/go-git/v5/plumbing"
)

// Object is an object of a pack as it stands: its kind, the size it declares, a reference for deltas, its content.
type Object struct {
	Kind      byte
	Size      int
	Reference []byte
	Content   []byte
}

// Raw is an object as it stands.
func Raw(kind byte, size int, reference, content []byte) Object {
	return Object{Kind: kind, Size: size, Reference: reference, Content: content}
}

// Whole is an object that is no delta.
func Whole(kind byte, content string) Object { return Raw(kind, len(content), nil, []byte(content)) }

// Of packs objects with a correct checksum.
func Of(objects ...Object) []byte {
	var b bytes.Buffer
	b.WriteString("PACK")
	_ = binary.Write(&b, binary.BigEndian, uint32(2))
	_ = binary.Write(&b, binary.BigEndian, uint32(len(objects)))
	for _, o := range objects {
		head, size := o.Kind<<4|byte(o.Size&15), o.Size>>4
		for size > 0 {
			b.WriteByte(head | 0x80)
			head, size = byte(size&0x7f), size>>7
		}
		b.WriteByte(head)
		b.Write(o.Reference)
		z := zlib.NewWriter(&b)
		_, _ = z.Write(o.Content)
		_ = z.Close()
	}
	sum := sha1.Sum(b.Bytes())
	b.Write(sum[:])
	return b.Bytes()
}

// Kinds of objects in a pack.
const (
	Blob  = 3
	Delta = 7
)

// Difference is a delta to base that copies it n times; size is what it declares.
func Difference(base, size int, commands ...byte) []byte {
	out := binary.AppendUvarint(nil, uint64(base))
	return append(binary.AppendUvarint(out, uint64(size)), commands...)
}

// Hash is the name of an object.
func Hash(kind plumbing.ObjectType, content string) []byte {
	hash := plumbing.ComputeHash(kind, []byte(content))
	return hash[:]
}

// DeltaOf is an object as a delta of another blob.
func DeltaOf(base string, content []byte) Object {
	return Raw(Delta, len(content), Hash(plumbing.BlobObject, base), content)
}
