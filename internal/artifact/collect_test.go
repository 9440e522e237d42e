// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/artifact"
)

func TestF13Collect(t *testing.T) {
	hour := time.Hour
	cases := map[string]struct {
		reason string
		ages   []time.Duration // of artifacts 0, 1, ...
		keep   []int
		byName bool // keep by the digest of the content
		retain int
		minAge time.Duration
		want   []int // what is left
	}{
		"nothing to spare":     {"", []time.Duration{3 * hour, 2 * hour}, nil, false, 2, 0, []int{0, 1}},
		"newest stay":          {"", []time.Duration{3 * hour, 1 * hour, 2 * hour}, nil, false, 2, 0, []int{1, 2}},
		"kept":                 {"a deployment runs it", []time.Duration{3 * hour, 1 * hour, 2 * hour}, []int{0}, false, 1, 0, []int{0, 1}},
		"kept by content":      {"the revision names it", []time.Duration{3 * hour, 1 * hour, 2 * hour}, []int{0}, true, 1, 0, []int{0, 1}},
		"young":                {"it may be advertised in a moment", []time.Duration{3 * hour, 1 * hour, 2 * hour}, nil, false, 0, 150 * time.Minute, []int{1, 2}},
		"equal times":          {"file systems with coarse times", []time.Duration{hour, hour, hour, hour}, []int{3}, false, 1, 0, nil},
		"retain none":          {"", []time.Duration{3 * hour, 2 * hour}, nil, false, 0, 0, []int{}},
		"more kept than there": {"", []time.Duration{3 * hour}, []int{0}, false, 9, 0, []int{0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			all := agedArtifacts(t, dir, tc.ages)
			kept := map[string]bool{}
			for _, i := range tc.keep {
				kept[all[i].Digest] = !tc.byName
				kept[all[i].Revision[len("main@"):]] = tc.byName
			}
			store := openStore(t, dir)
			removed, err := store.Collect(t.Context(), owner, func(digest string) bool { return kept[digest] }, tc.retain, tc.minAge)
			if err != nil {
				t.Fatal(err)
			}
			var left []int
			var want []string
			for i, a := range all {
				if store.Verify(t.Context(), owner, a) == nil {
					left = append(left, i)
				} else {
					want = append(want, a.Digest)
				}
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, removed); diff != "" {
				t.Errorf("removed, but not told, or the other way round: %s", diff)
			}
			if tc.want != nil && !slices.Equal(left, tc.want) {
				t.Errorf("left are %v where %v were expected: %s", left, tc.want, tc.reason)
			}
			if tc.want == nil && (len(left) > 2 || !slices.Contains(left, 3)) {
				t.Errorf("left are %v", left)
			}
		})
	}
}

// agedArtifacts stores one artifact an age.
func agedArtifacts(t *testing.T, dir string, ages []time.Duration) []meta.Artifact {
	t.Helper()
	now := time.Now()
	var all []meta.Artifact
	for i, age := range ages {
		a := put(t, openStore(t, dir), files(map[string]string{"a": fmt.Sprint(i)}))
		if err := os.Chtimes(filepath.Join(dir, a.Path), now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

func TestF13CollectSparesWhatWasPutAgain(t *testing.T) {
	dir := t.TempDir()
	old := agedArtifacts(t, dir, []time.Duration{48 * time.Hour, time.Hour})[0]
	store := openStore(t, dir)
	again := put(t, store, files(map[string]string{"a": "0"}))
	never := func(string) bool { return false }
	if _, err := store.Collect(t.Context(), owner, never, 1, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := store.Verify(t.Context(), owner, again); err != nil || again.Digest != old.Digest {
		t.Errorf("what Put has just returned is gone: %v", err)
	}
}

func TestCollectRemovesOrphanedDigests(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, dir)
	a := put(t, store, files(map[string]string{"a": "1"}))
	orphan := filepath.Join(dir, filepath.Dir(a.Path), digestOf(nil)[7:]+".tar.gz.sha256")
	if err := os.WriteFile(orphan, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Collect(t.Context(), owner, func(string) bool { return true }, 1, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(orphan); err == nil {
		t.Error("a digest without an archive stays")
	}
	if err := openStore(t, dir).Verify(t.Context(), owner, a); err != nil {
		t.Error(err)
	}
}

func TestRemoveAndOwners(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, dir)
	var all []artifact.Owner
	for _, name := range []string{"a", "b.c", "d"} {
		o := artifact.Owner{Kind: "bundlesource", Namespace: "team-" + name[:1], Name: name}
		if _, err := store.Put(t.Context(), o, "", files(map[string]string{"a": name})); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	expect := func(want []artifact.Owner) {
		t.Helper()
		got, err := store.Owners()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
	}
	expect(all)
	for range 2 { // the second time there is nothing to do
		if err := store.Remove(t.Context(), all[1]); err != nil {
			t.Fatal(err)
		}
		expect([]artifact.Owner{all[0], all[2]})
	}
	if _, err := store.Collect(t.Context(), all[1], func(string) bool { return false }, 0, 0); err != nil {
		t.Errorf("collecting for an owner without artifacts: %v", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	expect(nil)
}
