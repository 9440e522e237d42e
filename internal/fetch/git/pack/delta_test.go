// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/packs"
)

// openObjects indexes a pack of some objects.
func openObjects(ctx context.Context, t *testing.T, l fetch.Limits, objects ...packs.Object) (*File, error) {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "pack"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(packs.Of(objects...)); err != nil {
		t.Fatal(err)
	}
	p, err := Open(ctx, file, dir, l)
	if err == nil {
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return p, err
}

func TestM17WhatIsRebuiltInMemoryIsBounded(t *testing.T) {
	limit, beyond := strings.Repeat("a", maxRebuilt), strings.Repeat("a", maxRebuilt+1)
	all := func(size int) []byte { // copies of the first 64 KiB of the base
		commands := []byte{}
		for left := size; left > 0; left -= implicitCopy {
			n := min(left, implicitCopy)
			commands = append(commands, 0xb0, byte(n), byte(n>>8))
		}
		return commands
	}
	cases := map[string]struct {
		reason  string
		objects []packs.Object
		want    fetch.Reason
	}{
		"AtLimit": {"base and target at the limit", []packs.Object{packs.Whole(packs.Blob, limit), packs.DeltaOf(limit, packs.Difference(maxRebuilt, maxRebuilt, all(maxRebuilt)...))}, ""},
		"Base":    {"the base is too large", []packs.Object{packs.Whole(packs.Blob, beyond), packs.DeltaOf(beyond, packs.Difference(maxRebuilt+1, 1, 1, 'x'))}, fetch.LimitExceeded},
		"Target":  {"the target is too large", []packs.Object{packs.Whole(packs.Blob, limit), packs.DeltaOf(limit, packs.Difference(maxRebuilt, maxRebuilt+1, all(maxRebuilt+1)...))}, fetch.LimitExceeded},
		"Delta":   {"the delta is too large", []packs.Object{packs.Whole(packs.Blob, "b"), packs.DeltaOf("b", append(packs.Difference(1, 1, 1, 'x'), beyond...))}, fetch.LimitExceeded},
		"Whole":   {"what is no delta is not rebuilt", []packs.Object{packs.Whole(packs.Blob, beyond)}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := openObjects(t.Context(), t, fetch.DefaultLimits(), tc.objects...)
			if fetch.ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err != nil && !strings.Contains(err.Error(), "16777216 bytes as a difference") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// TestM17BranchingChain has a chain that is larger than what is held, and each of its objects is needed once more on the
// way back.
func TestM17BranchingChain(t *testing.T) {
	const length, size = 40, 1 << 20
	content := strings.Repeat("c", size)
	objects, ends := []packs.Object{packs.Whole(packs.Blob, content)}, []string{}
	for i := range length {
		mark := fmt.Sprintf("%04d", i)
		commands := []byte{} // all of the base but its last four bytes, then the mark
		for offset := 0; offset < size; offset += implicitCopy {
			n := min(implicitCopy, size-4-offset) % implicitCopy
			commands = append(commands, 0xb7, byte(offset), byte(offset>>8), byte(offset>>16), byte(n), byte(n>>8))
		}
		next, end := content[:size-4]+mark, mark
		objects = append(objects,
			packs.DeltaOf(content, packs.Difference(size, size, append(append(commands, 4), mark...)...)),
			packs.DeltaOf(content, packs.Difference(size, 4, append([]byte{4}, end...)...)))
		content, ends = next, append(ends, end)
	}
	p, err := openObjects(t.Context(), t, fetch.DefaultLimits(), objects...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range append(ends, content) {
		got, err := p.Get(plumbing.Hash(packs.Hash(plumbing.BlobObject, want)), plumbing.BlobObject)
		if err != nil || string(got) != want {
			t.Errorf("%.20q: %v", got, err)
		}
	}
	limits := fetch.DefaultLimits()
	limits.GitPackBytes = (length*size + length*4 + size + 100_000) / inflation
	if _, err := openObjects(t.Context(), t, limits, objects...); fetch.ReasonOf(err) != fetch.LimitExceeded {
		t.Errorf("reading again counts: %v", err)
	}
}

func TestM17ReleaseKeepsWhatIsNeededNext(t *testing.T) {
	chain := []step{}
	for range 5 {
		chain = append(chain, step{content: make([]byte, maxRebuilt)})
	}
	release(chain)
	for i, s := range chain {
		if held := s.content != nil; held != (i >= 3) {
			t.Errorf("step %d: held is %v", i, held)
		}
	}
}

func TestM17PacksWaitForEachOther(t *testing.T) {
	for range cap(rebuilding) {
		rebuilding <- struct{}{}
	}
	release := func() { <-rebuilding }
	objects := []packs.Object{packs.Whole(packs.Blob, "base"), packs.DeltaOf("base", packs.Difference(4, 1, 1, 'x'))}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() {
		_, err := openObjects(ctx, t, fetch.DefaultLimits(), objects...)
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("it did not wait: %v", err)
	default:
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := openObjects(t.Context(), t, fetch.DefaultLimits(), objects[0]); err != nil {
		t.Errorf("a pack without deltas need not wait: %v", err)
	}
	release()
	if _, err := openObjects(t.Context(), t, fetch.DefaultLimits(), objects...); err != nil {
		t.Errorf("with a place: %v", err)
	}
	if len(rebuilding) != cap(rebuilding)-1 {
		t.Error("a place was not given back")
	}
	release()
}

func TestM17ShorterThanDeclared(t *testing.T) {
	_, err := openObjects(t.Context(), t, fetch.DefaultLimits(), packs.Raw(packs.Blob, 9, nil, []byte("x")))
	if fetch.ReasonOf(err) != fetch.InvalidContent {
		t.Errorf("got %v", err)
	}
}
