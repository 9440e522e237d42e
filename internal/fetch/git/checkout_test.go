// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/git/pack"
	"github.com/satchel-dev/satchel/tests/packs"
)

func TestM16Directories(t *testing.T) {
	r := newRepository(t)
	blob := r.blob("1")
	inner := r.tree(leaf{"100644", "x", blob})
	r.commit("main", r.tree(
		leaf{"40000", "ab", inner}, leaf{"40000", "deploy", r.tree(leaf{"40000", "inner", inner}, leaf{"100755", "run", blob})},
		leaf{"120000", "link", r.blob("deploy")}, leaf{"100644", "top", blob}), "x")
	cases := map[string]struct {
		reason, directory string
		want              map[string]string
		err               fetch.Reason
	}{
		"All":      {"everything", "", map[string]string{"ab/x": "1", "deploy/inner/x": "1", "deploy/run": "1", "top": "1"}, ""},
		"Dot":      {"everything", ".", map[string]string{"ab/x": "1", "deploy/inner/x": "1", "deploy/run": "1", "top": "1"}, ""},
		"DotSlash": {"as people write it", "./deploy/", map[string]string{"inner/x": "1", "run": "1"}, ""},
		"Nested":   {"a path", "deploy/inner", map[string]string{"x": "1"}, ""},
		"Short":    {"names of any length", "ab", map[string]string{"x": "1"}, ""},
		"Missing":  {"the message names it", "none", nil, fetch.NotFound},
		"File":     {"not a folder", "top", nil, fetch.InvalidContent},
		"Link":     {"never followed", "link", nil, fetch.InvalidContent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, files, err := pull(t, Options{URL: r.url, Directory: tc.directory})
			if fetch.ReasonOf(err) != tc.err {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, files); err == nil && diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
	for _, bad := range []string{"..", "a/../..", "/etc", "a//b", "../x", ".git", "a/.GIT/b", "//", "a/./b"} {
		if _, err := New(Options{URL: r.url, Directory: bad, Client: client()}); fetch.ReasonOf(err) != fetch.Refused {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestM16HostileTrees(t *testing.T) {
	r := newRepository(t)
	blob := r.blob("CANARY-git")
	inner := r.tree(leaf{"100644", "config", blob})
	names := map[string]string{
		"DotGit": ".git", "Upper": ".GIT", "Space": ".git ", "Dot": ".git.", "Stream": ".git::$INDEX_ALLOCATION",
		"Short": "git~1", "ShortUpper": "GIT~2", "HFS": ".g\u200cit", "Parent": "..", "Self": ".", "Slash": "a/b", "Up": "../x",
		"Backslash": `a\b`, "Control": "a\x01", "Absolute": "/etc",
	}
	for name, bad := range names {
		for _, mode := range []string{"100644", "40000", "120000"} {
			t.Run(name+mode, func(t *testing.T) {
				hash := blob
				if mode == "40000" {
					hash = inner
				}
				r.commit("main", r.tree(leaf{"100644", "good", blob}, leaf{mode, bad, hash}), bad)
				_, _, err := pull(t, Options{URL: r.url})
				if fetch.ReasonOf(err) != fetch.InvalidContent {
					t.Errorf("an entry named %q: %v", bad, err)
				}
			})
		}
	}
}

func TestM16LinksAndSubmodules(t *testing.T) {
	r := newRepository(t)
	blob := r.blob("1")
	r.commit("main", r.tree(
		leaf{"120000", ".gitmodules", r.blob("/etc/passwd")}, leaf{"100644", "a", blob}, leaf{"120000", "in", r.blob("a")},
		leaf{"160000", "module", strings.Repeat("a", 40)}, leaf{"120000", "out", r.blob("../../etc/passwd")},
	), "links")
	_, files, err := pull(t, Options{URL: r.url})
	if diff := cmp.Diff(map[string]string{"a": "1"}, files); err != nil || diff != "" {
		t.Errorf("links and submodules are skipped: %v %s", err, diff)
	}
	r.commit("main", r.tree(leaf{"120000", "x", r.blob("/tmp")}, leaf{"40000", "x", r.tree(leaf{"100644", "f", blob})}), "twice")
	if _, files, err := pull(t, Options{URL: r.url}); err != nil || files["x/f"] != "1" {
		t.Errorf("nothing is written through a link: %v %v", files, err)
	}
}

func TestM16Bombs(t *testing.T) {
	r := newRepository(t)
	limits := fetch.DefaultLimits()
	limits.Entries, limits.ExtractedBytes, limits.FileBytes = 100, 5000, 1000
	level := r.tree(leaf{"100644", "f", r.blob("")})
	for range 8 {
		leaves := []leaf{}
		for i := range 10 {
			leaves = append(leaves, leaf{"40000", fmt.Sprint(i), level})
		}
		level = r.tree(leaves...)
	}
	deep := r.tree(leaf{"100644", "f", r.blob("")})
	for range 80 {
		deep = r.tree(leaf{"40000", "d", deep})
	}
	many := []leaf{}
	for i := range 101 {
		many = append(many, leaf{"100644", fmt.Sprintf("f%03d", i), r.blob("")})
	}
	copies := []leaf{}
	for i := range 6 {
		copies = append(copies, leaf{"100644", fmt.Sprint(i), r.blob(strings.Repeat("x", 1000))})
	}
	cases := map[string]struct{ reason, tree string }{
		"Exponential": {"ten times ten times ten folders from ten objects", level},
		"Deep":        {"deeper than any", deep},
		"Many":        {"more files than allowed", r.tree(many...)},
		"Large":       {"one large file", r.tree(leaf{"100644", "f", r.blob(strings.Repeat("x", 1001))})},
		"Copies":      {"the same file again and again", r.tree(copies...)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r.commit("main", tc.tree, name)
			if _, _, err := pull(t, Options{URL: r.url, Limits: limits}); fetch.ReasonOf(err) != fetch.LimitExceeded {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	r.commit("main", r.tree(many[:100]...), "at the limit")
	if _, files, err := pull(t, Options{URL: r.url, Limits: limits}); err != nil || len(files) != 100 {
		t.Errorf("input at the limit is accepted: %d %v", len(files), err)
	}
}

func FuzzParseTree(f *testing.F) {
	f.Add([]byte("100644 a\x00" + strings.Repeat("h", 20)))
	f.Add([]byte("40000 a b\x00short"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTree(data)
		if err != nil {
			return
		}
		size := 0
		for _, e := range entries {
			size += len(e.name) + 22
		}
		if size > len(data) {
			t.Errorf("%d bytes of entries from %d", size, len(data))
		}
	})
}

// TestM17NestedFolders has folders that each have entries within the limit, but too many together: they are counted
// before the first of them is read, which is missing here.
func TestM17NestedFolders(t *testing.T) {
	const commitKind, treeKind = 1, 2
	missing := string(packs.Hash(plumbing.BlobObject, "missing"))
	folder := func(below string) string {
		content := ""
		if below != "" {
			content = "40000 a\x00" + string(packs.Hash(plumbing.TreeObject, below))
		}
		for i := range 60 {
			content += fmt.Sprintf("100644 b%02d\x00%s", i, missing)
		}
		return content
	}
	inner := folder("")
	outer := folder(inner)
	commit := fmt.Sprintf("tree %x\n", packs.Hash(plumbing.TreeObject, outer))
	for entries, want := range map[int]fetch.Reason{121: fetch.InvalidContent, 120: fetch.LimitExceeded} {
		limits := fetch.DefaultLimits()
		limits.Entries = entries
		p, err := openObjects(t, limits, packs.Whole(commitKind, commit), packs.Whole(treeKind, outer), packs.Whole(treeKind, inner))
		if err != nil {
			t.Fatal(err)
		}
		tree, err := fetch.NewTree(t.TempDir(), limits)
		if err != nil {
			t.Fatal(err)
		}
		f := fetcher(t, Options{URL: "https://example.org/r", Limits: limits})
		_, err = new(job).checkout(t.Context(), f, p, plumbing.Hash(packs.Hash(plumbing.CommitObject, commit)), tree)
		if fetch.ReasonOf(err) != want {
			t.Errorf("with a limit of %d: %v", entries, err)
		}
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	}
}

// openObjects indexes a pack of some objects.
func openObjects(t *testing.T, l fetch.Limits, objects ...packs.Object) (*pack.File, error) {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "pack"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(packs.Of(objects...)); err != nil {
		t.Fatal(err)
	}
	opened, err := pack.Open(t.Context(), file, dir, l)
	if err == nil {
		t.Cleanup(func() {
			if err := opened.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return opened, err
}
