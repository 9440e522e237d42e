// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestReferences(t *testing.T) {
	r := newRepository(t)
	first := r.files("main", "a", "1")
	r.git(nil, "tag", "v1.0.0", first)
	second := r.files("main", "a", "2")
	r.git(nil, "tag", "-a", "-m", "annotated", "v1.1.0", second)
	third := r.files("main", "a", "3")
	r.git(nil, "tag", "2.0.0-rc.1", third)
	r.git(nil, "tag", "not-a-version", third)
	side := r.files("release/side", "a", "side")
	pull := r.files("pulled", "a", "pull")
	r.git(nil, "update-ref", "refs/pull/420/head", pull)
	r.git(nil, "update-ref", "-d", "refs/heads/pulled")
	cases := map[string]struct {
		reason string
		o      Options
		want   fetch.Resolved
		a      string
	}{
		"Default":    {"what the server calls HEAD", Options{}, fetch.Resolved{Reference: "main", Digest: "sha1:" + third}, "3"},
		"Branch":     {"with a slash in it", Options{Branch: "release/side"}, fetch.Resolved{Reference: "release/side", Digest: "sha1:" + side}, "side"},
		"Tag":        {"a light one", Options{Tag: "v1.0.0"}, fetch.Resolved{Reference: "v1.0.0", Digest: "sha1:" + first}, "1"},
		"Annotated":  {"the commit, not the tag object", Options{Tag: "v1.1.0"}, fetch.Resolved{Reference: "v1.1.0", Digest: "sha1:" + second}, "2"},
		"Name":       {"neither branch nor tag", Options{Name: "refs/pull/420/head"}, fetch.Resolved{Reference: "refs/pull/420/head", Digest: "sha1:" + pull}, "pull"},
		"NameOfTag":  {"the commit, not the tag object", Options{Name: "refs/tags/v1.1.0"}, fetch.Resolved{Reference: "refs/tags/v1.1.0", Digest: "sha1:" + second}, "2"},
		"Range":      {"the newest in it", Options{SemVer: ">=1.0 <2"}, fetch.Resolved{Reference: "v1.1.0", Digest: "sha1:" + second}, "2"},
		"PreRelease": {"only when asked for", Options{SemVer: ">=1.0.0-0"}, fetch.Resolved{Reference: "2.0.0-rc.1", Digest: "sha1:" + third}, "3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.URL = r.url
			r.seen()
			resolved, err := fetcher(t, tc.o).Resolve(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, resolved); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if got := r.seen(); len(got) != 1 || got[0] != "GET /org/repo.git/info/refs" {
				t.Errorf("not one request: %v", got)
			}
			_, files, err := fetchInto(t, fetcher(t, tc.o), resolved)
			if diff := cmp.Diff(map[string]string{"a": tc.a}, files); err != nil || diff != "" {
				t.Errorf("%s: %v %s", tc.reason, err, diff)
			}
		})
	}
}

func TestF17CommitsAndMovedReferences(t *testing.T) {
	r := newRepository(t)
	first := r.files("main", "a", "1")
	f := fetcher(t, Options{URL: r.url, Branch: "main"})
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	r.files("main", "a", "2")
	if _, files, err := fetchInto(t, f, resolved); fetch.ReasonOf(err) != fetch.Moved || len(files) > 0 {
		t.Errorf("the server gives only away what it advertises: %v %v", files, err)
	}
	r.git(nil, "config", "uploadpack.allowAnySHA1InWant", "true")
	if got, files, err := fetchInto(t, f, resolved); err != nil || files["a"] != "1" || got != resolved {
		t.Errorf("the resolved commit, not the newest: %v %v %v", got, files, err)
	}
	r.git(nil, "config", "uploadpack.allowAnySHA1InWant", "false")
	r.git(nil, "config", "uploadpack.allowReachableSHA1InWant", "true")
	// The branch was rewritten: the old commit is not reachable.
	if _, _, err := fetchInto(t, f, resolved); fetch.ReasonOf(err) != fetch.Moved {
		t.Errorf("a rewritten branch: %v", err)
	}
	r.git(nil, "update-ref", "refs/heads/other", first)
	r.seen()
	pinned := fetcher(t, Options{URL: r.url, Commit: first})
	if resolved, err = pinned.Resolve(context.Background()); err != nil || resolved != (fetch.Resolved{Digest: "sha1:" + first, Pinned: true}) {
		t.Errorf("%+v, %v", resolved, err)
	}
	if got := r.seen(); len(got) > 0 {
		t.Errorf("a commit needs no request: %v", got)
	}
	if _, files, err := fetchInto(t, pinned, resolved); err != nil || files["a"] != "1" {
		t.Errorf("%v %v", files, err)
	}
	r.git(nil, "update-ref", "-d", "refs/heads/main")
	if _, err := f.Resolve(context.Background()); fetch.ReasonOf(err) != fetch.NotFound {
		t.Errorf("a deleted branch: %v", err)
	}
}

func TestOnlyTheNewestCommitIsTransferred(t *testing.T) {
	r := newRepository(t)
	old := r.files("main", "old", strings.Repeat("history ", 1000))
	tree := r.git(nil, "rev-parse", r.files("side", "a", "1")+"^{tree}")
	child := r.git(nil, "commit-tree", "-m", "child", "-p", old, tree)
	r.git(nil, "update-ref", "refs/heads/main", child)
	f := fetcher(t, Options{URL: r.url})
	scratch := t.TempDir()
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	commit, err := commitOf(resolved.Digest)
	if err != nil {
		t.Fatal(err)
	}
	objects, _, err := new(job).download(context.Background(), f, target{commit: commit}, scratch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = objects.Close() })
	if objects.Len() != 3 {
		t.Errorf("%d objects instead of commit, tree and blob", objects.Len())
	}
}

func TestDeltasAreRebuilt(t *testing.T) {
	r := newRepository(t)
	lines := make([]string, 400)
	for i := range lines {
		lines[i] = fmt.Sprintf("line %d of a file that git stores once and then as differences", i*i*7919)
	}
	want, files := map[string]string{}, []string{}
	for i := range 20 {
		lines[i*3] = fmt.Sprintf("changed %d", i)
		name := fmt.Sprintf("d/file%02d", i)
		want[name] = strings.Join(lines, "\n")
		files = append(files, name, want[name])
	}
	r.files("main", files...)
	r.git(nil, "repack", "-adfq", "--depth=50", "--window=50")
	_, got, err := pull(t, Options{URL: r.url})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	f := fetcher(t, Options{URL: r.url})
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	commit, err := commitOf(resolved.Digest)
	if err != nil {
		t.Fatal(err)
	}
	objects, _, err := new(job).download(context.Background(), f, target{commit: commit}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = objects.Close() })
	if objects.Rebuilt() == 0 {
		t.Error("the pack had no deltas, so this tested nothing")
	}
}

func TestS2LargeFilesAreStreamed(t *testing.T) {
	const size = 52 << 20
	r := newRepository(t)
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	r.commit("main", r.tree(leaf{"100644", "big", r.blob(string(content))}), "big")
	f := fetcher(t, Options{URL: r.url})
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	tree, err := fetch.NewTree(t.TempDir(), f.limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := f.Fetch(context.Background(), resolved, tree); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	got, err := fs.ReadFile(tree.FS(), "big")
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes came, %v", len(got), err)
	}
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d KiB allocated for a file of %d KiB", allocated>>10, size>>10)
	if allocated > size/4 {
		t.Errorf("%d bytes allocated for a file of %d", allocated, size)
	}
}
