// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/artifact"
)

func TestF9LoadFromTheCache(t *testing.T) {
	s := newServed(t)
	a := s.put(t, noise(5, 10_000))
	dir := t.TempDir()
	load := func() error {
		content, err := newLoader(t, dir, s.server.URL).Load(t.Context(), owner, a)
		if err != nil {
			return err
		}
		return content.Close()
	}
	if err := errors.Join(load(), load()); err != nil || s.requests.Load() != 1 {
		t.Fatalf("%d requests were made: %v", s.requests.Load(), err)
	}
	cached, err := filepath.Glob(filepath.Join(dir, "*/*/*/*.tar.gz"))
	if err != nil || len(cached) != 1 {
		t.Fatalf("cached is %v: %v", cached, err)
	}
	for name, tc := range damages() {
		if strings.HasPrefix(name, "digest") || strings.HasPrefix(name, "storage") || strings.HasPrefix(name, "folder of") {
			continue // there is no such thing in a cache
		}
		before := s.requests.Load()
		if err := tc.do(cached[0]); err != nil {
			t.Fatal(err)
		}
		if err := load(); err != nil || s.requests.Load() != before+1 {
			t.Errorf("%s: %d requests were made: %v", name, s.requests.Load()-before, err)
		}
	}
	s.server.Close()
	if err := load(); err != nil {
		t.Errorf("with the server down: %v", err)
	}
	if err := flipBit(cached[0]); err != nil {
		t.Fatal(err)
	}
	wantReason(t, load(), fetch.Unreachable)
}

// TestCacheEviction keeps three artifacts of 10 kB in a cache of 35 kB.
func TestCacheEviction(t *testing.T) {
	s := newServed(t)
	dir := t.TempDir()
	now := &clock{now: time.Unix(1e9, 0)}
	open := func() *artifact.Loader {
		return newLoader(t, dir, s.server.URL, func(o *artifact.LoaderOptions) { o.CacheBytes, o.Now = 35_000, now.Now })
	}
	loader := open()
	var all []meta.Artifact
	for seed := range uint64(5) {
		all = append(all, s.put(t, noise(20+seed, 10_000)))
	}
	load := func(i int) error {
		now.add(time.Second)
		content, err := loader.Load(t.Context(), owner, all[i])
		if err != nil {
			return err
		}
		return content.Close()
	}
	expect := func(step string, indices ...int) {
		t.Helper()
		var want []string
		for _, i := range indices {
			want = append(want, all[i].Digest[7:]+".tar.gz")
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, archives(t, dir)); diff != "" {
			t.Errorf("%s: %s", step, diff)
		}
	}
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	must(load(0), load(1), load(2), load(0), load(3))
	expect("1 was used least recently", 0, 2, 3)
	must(loader.Keep(owner, []string{all[2].Digest, all[2].Digest}), load(4))
	expect("2 is pinned, 0 goes", 2, 3, 4)
	loader = open()
	must(load(0))
	expect("pins and order hold over a restart", 2, 4, 0)
	must(loader.Keep(owner, []string{all[0].Digest, all[2].Digest, all[4].Digest}))
	var failure *artifact.StorageError
	if err := load(1); !errors.As(err, &failure) || !failure.Full() || !strings.Contains(err.Error(), "raise the size") {
		t.Errorf("a cache full of pinned artifacts gives %v", err)
	}
	expect("nothing was evicted", 0, 2, 4)
	must(loader.Keep(owner, nil), load(1))
	expect("2 was used least recently", 0, 1, 4)
}
