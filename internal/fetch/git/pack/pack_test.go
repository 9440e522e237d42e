// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/packs"
)

func TestM17Packs(t *testing.T) {
	base := strings.Repeat("b", 100)
	limits := fetch.DefaultLimits()
	limits.FileBytes, limits.GitPackBytes, limits.Entries = 1<<20, 4<<20, 10
	copyAll := []byte{0x90, 100} // copy 100 bytes from the start of the base
	chain := []packs.Object{packs.Whole(packs.Blob, base)}
	before := packs.Hash(plumbing.BlobObject, base)
	for i := range maxChain + 1 {
		content := fmt.Sprintf("%s%04d", base, i)
		size := len(base)
		if i > 0 {
			size += 4
		}
		d := packs.Difference(size, len(content), append(append([]byte{}, copyAll...), append([]byte{4}, content[100:]...)...)...)
		chain = append(chain, packs.Raw(packs.Delta, len(d), before, d))
		before = packs.Hash(plumbing.BlobObject, content)
	}
	generous := limits
	generous.GitPackBytes = 1 << 30
	long := limits
	long.Entries = 1000
	bomb := func(size, times int) []packs.Object {
		objects := []packs.Object{packs.Whole(packs.Blob, base)}
		for range times {
			d := packs.Difference(100, size, copyAll...)
			objects = append(objects, packs.Raw(packs.Delta, len(d), packs.Hash(plumbing.BlobObject, base), d))
		}
		return objects
	}
	good := packs.Difference(100, 100, copyAll...)
	cases := map[string]struct {
		reason string
		pack   []byte
		limits fetch.Limits
		want   fetch.Reason
	}{
		"Good":         {"whole objects and a delta", packs.Of(packs.Whole(packs.Blob, base), packs.Raw(packs.Delta, len(good), packs.Hash(plumbing.BlobObject, base), good)), limits, ""},
		"DeltaFirst":   {"a delta may stand before its base", packs.Of(packs.Raw(packs.Delta, len(good), packs.Hash(plumbing.BlobObject, base), good), packs.Whole(packs.Blob, base)), limits, ""},
		"Chain":        {"deltas of deltas without end", packs.Of(chain...), long, fetch.LimitExceeded},
		"Announced":    {"a delta that announces 64 MiB", packs.Of(bomb(64<<20, 1)...), generous, fetch.LimitExceeded},
		"TooLarge":     {"an object that declares 1 TiB", packs.Of(packs.Raw(packs.Blob, 1<<40, nil, []byte("x"))), limits, fetch.LimitExceeded},
		"LongerThanIt": {"an object longer than it declares", packs.Of(packs.Raw(packs.Blob, 1, nil, make([]byte, 1<<20))), limits, fetch.InvalidContent},
		"NoBase":       {"a delta of something that is not there", packs.Of(packs.Raw(packs.Delta, len(good), bytes.Repeat([]byte{1}, 20), good)), limits, fetch.InvalidContent},
		"BadDelta":     {"a delta for another base", packs.Of(packs.Whole(packs.Blob, "other"), packs.Raw(packs.Delta, len(good), packs.Hash(plumbing.BlobObject, "other"), good)), limits, fetch.InvalidContent},
		"Objects":      {"more objects than allowed", packs.Of(bomb(100, 100)...), limits, fetch.LimitExceeded},
		"Checksum":     {"a damaged pack", append(packs.Of(packs.Whole(packs.Blob, base)), 0)[1:], limits, fetch.InvalidContent},
		"Trailer":      {"a wrong checksum", append(packs.Of(packs.Whole(packs.Blob, base))[:len(packs.Of(packs.Whole(packs.Blob, base)))-1], 0), limits, fetch.InvalidContent},
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
			opened, err := Open(context.Background(), file, dir, tc.limits)
			if fetch.ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err != nil {
				return
			}
			data, err := opened.Get(plumbing.Hash(packs.Hash(plumbing.BlobObject, base)), plumbing.BlobObject)
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
	objects := []packs.Object{packs.Whole(packs.Blob, base)}
	for i := range 200 {
		d := packs.Difference(100, 101, 0x90, 100, 1, byte(i))
		objects = append(objects, packs.Raw(packs.Delta, len(d), packs.Hash(plumbing.BlobObject, base), d))
	}
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "pack"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(packs.Of(objects...)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), file, dir, limits); fetch.ReasonOf(err) != fetch.LimitExceeded {
		t.Errorf("%d bytes of deltas make %d bytes of objects: %v", 200*6, 200*101, err)
	}
}
