// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/artifact"
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
	if err := store.VerifyFull(t.Context(), owner, a); err != nil {
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

// TestF13AdvertisedArtifactsExist runs Put, GET, Verify and Collect of several owners in random order at the same time:
// what is advertised can be had at any time.
func TestF13AdvertisedArtifactsExist(t *testing.T) {
	store := openStore(t, t.TempDir())
	publications := 100
	if full() {
		publications = 500
	}
	var group sync.WaitGroup
	var all []*advertised
	for n := range 4 {
		status := &advertised{owner: artifact.Owner{Kind: "bundlesource", Namespace: "team", Name: fmt.Sprintf("app-%d", n)}}
		all = append(all, status)
		done := make(chan struct{})
		group.Go(func() {
			defer close(done)
			status.publish(t, store, rand.New(rand.NewPCG(uint64(n), 2)), publications)
		})
		for range 2 {
			group.Go(func() { status.consume(t, store, done) })
		}
		group.Go(func() { status.collect(t, store, done) })
	}
	group.Wait()
	for _, status := range all {
		if status.removed == 0 {
			t.Errorf("nothing of %s was ever collected", status.owner)
		}
	}
}

// advertised is what a status says: the present artifact and one that a deployment still runs.
type advertised struct {
	owner artifact.Owner
	// mu is held in reading while something depends on the status staying as it is.
	mu  sync.RWMutex
	now []meta.Artifact
	// removed counts what was collected.
	removed int
}

func (s *advertised) publish(t *testing.T, store *artifact.Store, random *rand.Rand, n int) {
	for range n {
		tree := noise(uint64(random.IntN(30)), 20_000) // some return
		a, err := store.Put(t.Context(), s.owner, "main", tree)
		if err != nil {
			t.Error(err)
			return
		}
		s.mu.Lock()
		s.now = append([]meta.Artifact{a}, s.now[:min(len(s.now), 1)]...)
		s.mu.Unlock()
	}
}

func (s *advertised) consume(t *testing.T, store *artifact.Store, done <-chan struct{}) {
	for !closed(done) {
		s.mu.RLock()
		for _, a := range s.now {
			if answer := get(store, a); answer.Code != http.StatusOK || digestOf(answer.Body.Bytes()) != a.Digest {
				t.Errorf("an advertised artifact is answered with %d", answer.Code)
			}
			if err := store.Verify(t.Context(), s.owner, a); err != nil {
				t.Error(err)
			}
		}
		s.mu.RUnlock()
	}
}

// collect keeps what it saw advertised when it began, as a reconcile does; what came since is young.
func (s *advertised) collect(t *testing.T, store *artifact.Store, done <-chan struct{}) {
	for !closed(done) {
		kept := map[string]bool{}
		s.mu.RLock()
		for _, a := range s.now {
			kept[a.Digest] = true
		}
		s.mu.RUnlock()
		removed, err := store.Collect(t.Context(), s.owner, func(digest string) bool { return kept[digest] }, 0, 200*time.Millisecond)
		if err != nil {
			t.Error(err)
		}
		s.removed += len(removed)
	}
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestSnapshots(t *testing.T) {
	dir := t.TempDir()
	open := func() *artifact.Snapshots {
		snapshots, err := artifact.OpenSnapshots(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		return snapshots
	}
	const key = "5d3e9a1c-0a53-4f4e-8f34-0a6f8f0a2b7e"
	load := func(want string, exists bool) {
		t.Helper()
		data, ok, err := open().Load(key)
		if err != nil || ok != exists || string(data) != want {
			t.Errorf("loaded %.20q, %v, %v", data, ok, err)
		}
	}
	load("", false)
	for _, value := range []string{"first", "", string(noise(12, 100_000)["noise"].Data)} {
		if err := open().Save(key, []byte(value)); err != nil {
			t.Fatal(err)
		}
		load(value, true)
	}
	file := filepath.Join(dir, key+".snapshot")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 25, len(content) - 1} { // in the beginning, the checksum, the value
		content[at] ^= 1
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := open().Load(key)
		wantReason(t, err, fetch.InvalidContent)
		content[at] ^= 1
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("its mode is %v: %v", info.Mode(), err)
	}
	if err := os.Truncate(file, 10); err != nil {
		t.Fatal(err)
	}
	_, _, err = open().Load(key)
	wantReason(t, err, fetch.InvalidContent)
	for range 2 {
		if err := open().Delete(key); err != nil {
			t.Fatal(err)
		}
	}
	load("", false)
}

func TestSnapshotsKeepThePreviousWhenSavingFails(t *testing.T) {
	dir := t.TempDir()
	steps, fail := 0, -1
	snapshots, err := artifact.OpenSnapshots(dir, hookFS{before: func(string) error {
		if steps++; steps-1 == fail {
			return fs.ErrInvalid
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshots.Save("uid", []byte("previous")); err != nil {
		t.Fatal(err)
	}
	for fail = range steps - 1 { // the last one syncs the folder, the new value is in place then
		steps = 0
		if err := snapshots.Save("uid", []byte("next")); err == nil {
			t.Errorf("step %d failed unnoticed", fail)
		}
		if data, ok, err := snapshots.Load("uid"); err != nil || !ok || string(data) != "previous" {
			t.Errorf("after step %d failed: %q, %v, %v", fail, data, ok, err)
		}
		if left := temporary(t, dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	for _, key := range []string{"", "../x", "a/b", ".", "A b"} {
		if err := snapshots.Save(key, nil); err == nil {
			t.Errorf("key %q was accepted", key)
		}
	}
}
