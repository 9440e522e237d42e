// SPDX-License-Identifier: Apache-2.0

package git

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
)

// openObjects indexes a pack of some objects.
func openObjects(ctx context.Context, t *testing.T, l fetch.Limits, objects ...raw) (*pack, error) {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "pack"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(packOf(objects...)); err != nil {
		t.Fatal(err)
	}
	p, err := openPack(ctx, file, dir, l)
	if err == nil {
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return p, err
}

// deltaOf is an object as a delta of another blob.
func deltaOf(base string, content []byte) raw {
	return raw{deltaKind, len(content), hashOf(plumbing.BlobObject, base), content}
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
		objects []raw
		want    fetch.Reason
	}{
		"AtLimit": {"base and target at the limit", []raw{whole(blobKind, limit), deltaOf(limit, delta(maxRebuilt, maxRebuilt, all(maxRebuilt)...))}, ""},
		"Base":    {"the base is too large", []raw{whole(blobKind, beyond), deltaOf(beyond, delta(maxRebuilt+1, 1, 1, 'x'))}, fetch.LimitExceeded},
		"Target":  {"the target is too large", []raw{whole(blobKind, limit), deltaOf(limit, delta(maxRebuilt, maxRebuilt+1, all(maxRebuilt+1)...))}, fetch.LimitExceeded},
		"Delta":   {"the delta is too large", []raw{whole(blobKind, "b"), deltaOf("b", append(delta(1, 1, 1, 'x'), beyond...))}, fetch.LimitExceeded},
		"Whole":   {"what is no delta is not rebuilt", []raw{whole(blobKind, beyond)}, ""},
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
	objects, ends := []raw{whole(blobKind, content)}, []string{}
	for i := range length {
		mark := fmt.Sprintf("%04d", i)
		commands := []byte{} // all of the base but its last four bytes, then the mark
		for offset := 0; offset < size; offset += implicitCopy {
			n := min(implicitCopy, size-4-offset) % implicitCopy
			commands = append(commands, 0xb7, byte(offset), byte(offset>>8), byte(offset>>16), byte(n), byte(n>>8))
		}
		next, end := content[:size-4]+mark, mark
		objects = append(objects,
			deltaOf(content, delta(size, size, append(append(commands, 4), mark...)...)),
			deltaOf(content, delta(size, 4, append([]byte{4}, end...)...)))
		content, ends = next, append(ends, end)
	}
	p, err := openObjects(t.Context(), t, fetch.DefaultLimits(), objects...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range append(ends, content) {
		got, err := p.get(plumbing.Hash(hashOf(plumbing.BlobObject, want)), plumbing.BlobObject)
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
	objects := []raw{whole(blobKind, "base"), deltaOf("base", delta(4, 1, 1, 'x'))}
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
	_, err := openObjects(t.Context(), t, fetch.DefaultLimits(), raw{blobKind, 9, nil, []byte("x")})
	if fetch.ReasonOf(err) != fetch.InvalidContent {
		t.Errorf("got %v", err)
	}
}
