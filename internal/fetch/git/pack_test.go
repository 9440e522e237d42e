// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// raw is an object of a pack as it stands: its kind, the size it declares, a reference for deltas, its content.
type raw struct {
	kind      byte
	size      int
	reference []byte
	content   []byte
}

func whole(kind byte, content string) raw { return raw{kind, len(content), nil, []byte(content)} }

// packOf packs objects with a correct checksum.
func packOf(objects ...raw) []byte {
	var b bytes.Buffer
	b.WriteString("PACK")
	_ = binary.Write(&b, binary.BigEndian, uint32(2))
	_ = binary.Write(&b, binary.BigEndian, uint32(len(objects)))
	for _, o := range objects {
		head, size := o.kind<<4|byte(o.size&15), o.size>>4
		for size > 0 {
			b.WriteByte(head | 0x80)
			head, size = byte(size&0x7f), size>>7
		}
		b.WriteByte(head)
		b.Write(o.reference)
		z := zlib.NewWriter(&b)
		_, _ = z.Write(o.content)
		_ = z.Close()
	}
	sum := sha1.Sum(b.Bytes())
	b.Write(sum[:])
	return b.Bytes()
}

// Kinds of objects in a pack.
const (
	blobKind  = 3
	deltaKind = 7
)

// delta is a difference to base that copies it n times; size is what it declares.
func delta(base, size int, commands ...byte) []byte {
	out := binary.AppendUvarint(nil, uint64(base))
	return append(binary.AppendUvarint(out, uint64(size)), commands...)
}

func hashOf(kind plumbing.ObjectType, content string) []byte {
	hash := plumbing.ComputeHash(kind, []byte(content))
	return hash[:]
}

func TestM17Packs(t *testing.T) {
	base := strings.Repeat("b", 100)
	limits := fetch.DefaultLimits()
	limits.FileBytes, limits.GitPackBytes, limits.Entries = 1<<20, 4<<20, 10
	copyAll := []byte{0x90, 100} // copy 100 bytes from the start of the base
	chain := []raw{whole(blobKind, base)}
	before := hashOf(plumbing.BlobObject, base)
	for i := range maxChain + 1 {
		content := fmt.Sprintf("%s%04d", base, i)
		size := len(base)
		if i > 0 {
			size += 4
		}
		d := delta(size, len(content), append(append([]byte{}, copyAll...), append([]byte{4}, content[100:]...)...)...)
		chain = append(chain, raw{deltaKind, len(d), before, d})
		before = hashOf(plumbing.BlobObject, content)
	}
	generous := limits
	generous.GitPackBytes = 1 << 30
	long := limits
	long.Entries = 1000
	bomb := func(size, times int) []raw {
		objects := []raw{whole(blobKind, base)}
		for range times {
			d := delta(100, size, copyAll...)
			objects = append(objects, raw{deltaKind, len(d), hashOf(plumbing.BlobObject, base), d})
		}
		return objects
	}
	good := delta(100, 100, copyAll...)
	cases := map[string]struct {
		reason string
		pack   []byte
		limits fetch.Limits
		want   fetch.Reason
	}{
		"Good":         {"whole objects and a delta", packOf(whole(blobKind, base), raw{deltaKind, len(good), hashOf(plumbing.BlobObject, base), good}), limits, ""},
		"DeltaFirst":   {"a delta may stand before its base", packOf(raw{deltaKind, len(good), hashOf(plumbing.BlobObject, base), good}, whole(blobKind, base)), limits, ""},
		"Chain":        {"deltas of deltas without end", packOf(chain...), long, fetch.LimitExceeded},
		"Announced":    {"a delta that announces 64 MiB", packOf(bomb(64<<20, 1)...), generous, fetch.LimitExceeded},
		"TooLarge":     {"an object that declares 1 TiB", packOf(raw{blobKind, 1 << 40, nil, []byte("x")}), limits, fetch.LimitExceeded},
		"LongerThanIt": {"an object longer than it declares", packOf(raw{blobKind, 1, nil, make([]byte, 1<<20)}), limits, fetch.InvalidContent},
		"NoBase":       {"a delta of something that is not there", packOf(raw{deltaKind, len(good), bytes.Repeat([]byte{1}, 20), good}), limits, fetch.InvalidContent},
		"BadDelta":     {"a delta for another base", packOf(whole(blobKind, "other"), raw{deltaKind, len(good), hashOf(plumbing.BlobObject, "other"), good}), limits, fetch.InvalidContent},
		"Objects":      {"more objects than allowed", packOf(bomb(100, 100)...), limits, fetch.LimitExceeded},
		"Checksum":     {"a damaged pack", append(packOf(whole(blobKind, base)), 0)[1:], limits, fetch.InvalidContent},
		"Trailer":      {"a wrong checksum", append(packOf(whole(blobKind, base))[:len(packOf(whole(blobKind, base)))-1], 0), limits, fetch.InvalidContent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, err := os.Create(filepath.Join(dir, "pack"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.Write(tc.pack); err != nil {
				t.Fatal(err)
			}
			opened, err := openPack(context.Background(), file, dir, tc.limits)
			if fetch.ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err != nil {
				return
			}
			data, err := opened.get(plumbing.Hash(hashOf(plumbing.BlobObject, base)), plumbing.BlobObject)
			if err != nil || string(data) != base {
				t.Errorf("%s: %q, %v", tc.reason, data, err)
			}
			if err := opened.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestM17TotalOfDeltasIsBounded(t *testing.T) {
	limits := fetch.DefaultLimits()
	limits.FileBytes, limits.GitPackBytes = 1<<20, 1<<10
	base := strings.Repeat("b", 100)
	objects := []raw{whole(blobKind, base)}
	for i := range 200 {
		d := delta(100, 101, 0x90, 100, 1, byte(i))
		objects = append(objects, raw{deltaKind, len(d), hashOf(plumbing.BlobObject, base), d})
	}
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "pack"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(packOf(objects...)); err != nil {
		t.Fatal(err)
	}
	if _, err := openPack(context.Background(), file, dir, limits); fetch.ReasonOf(err) != fetch.LimitExceeded {
		t.Errorf("%d bytes of deltas make %d bytes of objects: %v", 200*6, 200*101, err)
	}
}
