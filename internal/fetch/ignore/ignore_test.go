// SPDX-License-Identifier: Apache-2.0

package ignore_test

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/ignore"
)

func tree(names ...string) fstest.MapFS {
	files := fstest.MapFS{}
	for _, name := range names {
		files[name] = &fstest.MapFile{Data: []byte(name)}
	}
	return files
}

func left(t *testing.T, files fs.FS) []string {
	t.Helper()
	found := map[string]bool{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		found[name] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(found))
}

var all = []string{".git/config", ".gitignore", "a.yaml", "docs/a.md", "docs/keep/b.md", "sub/.git/HEAD", "sub/CVS/Root", "sub/a.yaml", "sub/docs/c.md", "x/.svn/wc"}

func TestFS(t *testing.T) {
	tests := map[string]struct {
		list string
		want []string
	}{
		"nothing":   {"", []string{".gitignore", "a.yaml", "docs/a.md", "docs/keep/b.md", "sub/a.yaml", "sub/docs/c.md"}},
		"anchored":  {"/docs/\n", []string{".gitignore", "a.yaml", "sub/a.yaml", "sub/docs/c.md"}},
		"anywhere":  {"docs/", []string{".gitignore", "a.yaml", "sub/a.yaml"}},
		"files":     {"# text\n\n*.md\r\n.gitignore", []string{"a.yaml", "sub/a.yaml"}},
		"back in":   {"*.md\n!a.md", []string{".gitignore", "a.yaml", "docs/a.md", "sub/a.yaml"}},
		"too late":  {"/docs/\n!/docs/keep/b.md", []string{".gitignore", "a.yaml", "sub/a.yaml", "sub/docs/c.md"}},
		"keep only": {"/*\n!/sub\n/sub/*\n!/sub/a.yaml", []string{"sub/a.yaml"}},
		"stars":     {"**/docs/**", []string{".gitignore", "a.yaml", "sub/a.yaml"}},
		"vcs":       {"!.git/\n*.yaml\n*.md\n.gitignore", []string{".git/config", "sub/.git/HEAD"}},
	}
	for name, tt := range tests {
		files, err := ignore.FS(tree(all...), tt.list)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, left(t, files)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if err := fstest.TestFS(files, tt.want...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	files, err := ignore.FS(tree(all...), "/docs/")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"docs", "docs/a.md", "docs/keep/b.md", ".git/config"} {
		if _, err := files.Open(name); err == nil {
			t.Errorf("%s can be opened", name)
		}
	}
}

// TestAsGitDoes compares with Git itself, where it is installed.
func TestAsGitDoes(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed: its answers are not compared")
	}
	names := []string{"a.yaml", "b/a.yaml", "b/c/a.yaml", "b/c/d.md", "docs/a.md", "docs/b/a.md", "foo", "b/foo", "x y", "[z]"}
	lists := []string{"*.yaml", "/a.yaml", "b/", "b/*", "b/**", "**/a.yaml", "docs/**/a.md", "foo", "/foo", "*\n!foo", "b/c", "[z]", "\\[z\\]", "x\\ y", "?oo",
		"docs/*\n!docs/b", "a.*\n!/b/", "*\n!b/\n!b/**", "[!z]*", "[a-f]*", "\\!x\nfoo ", "/**", "**", "**/", "**/b", "b/**/**/a.yaml", "/b/**/", "x\\ ", "**/c/**", "b/**/d.md", "!foo", "foo/", "/*/a.yaml"}
	for _, list := range lists {
		dir := t.TempDir()
		for _, name := range names {
			where := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(where), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(where, []byte("1"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		excludes := filepath.Join(t.TempDir(), "list")
		if err := os.WriteFile(excludes, []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, arguments := range [][]string{{"init", "-q"}, {"ls-files", "-z", "--others", "--exclude-from=" + excludes}} {
			command := exec.CommandContext(t.Context(), git, arguments...) //nolint:gosec // fixed arguments
			command.Dir, command.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
			output, err := command.Output()
			if err != nil {
				t.Fatal(err)
			}
			if arguments[0] == "init" {
				continue
			}
			want := strings.FieldsFunc(string(output), func(r rune) bool { return r == 0 })
			slices.Sort(want)
			files, err := ignore.FS(os.DirFS(dir), list)
			if err != nil {
				t.Fatalf("%q: %v", list, err)
			}
			if got := left(t, files); !slices.Equal(want, got) {
				t.Errorf("%q: Git takes %q, we %q", list, want, got)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for name, list := range map[string]string{
		"bracket": "[a", "backslash": "a\\", "many": strings.Repeat("a\n", 201), "asterisks": strings.Repeat("*a*b*c\n", 167),
		"deep": strings.Repeat("**/a\n", 11), "long": "**/" + strings.Repeat("a/", 16) + "x", "nothing": "a\n!", "empty part": "a//b",
	} {
		if _, err := ignore.FS(tree("a"), list); fetch.ReasonOf(err) != fetch.Refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCost: the worst list that is taken, against as many files as there may be.
func TestCost(t *testing.T) {
	const count = 2000 // a tenth of the limit
	files := fstest.MapFS{}
	for i := range count {
		files[strings.Repeat("a", 100)+"/"+strings.Repeat("a", 100)+strings.Repeat("b", i%50)+string(rune('a'+i%26))+strings.Repeat("c", i/50)] = &fstest.MapFile{}
	}
	filtered, err := ignore.FS(files, strings.Repeat("**/a*/*a*a*a*a*a*a*a*x\n", 10)+strings.Repeat("*a*x\n", 190))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	left(t, filtered)
	took := time.Since(began)
	t.Logf("%v for %d files and 200 patterns", took, len(files))
	if took > 60*time.Second {
		t.Errorf("%v", took)
	}
}
