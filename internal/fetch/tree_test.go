// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch/packed"
)

// smallLimits keeps the archives of tests small.
func smallLimits() Limits {
	l := DefaultLimits()
	l.ExtractedBytes, l.FileBytes, l.Entries, l.Depth, l.PathBytes = 4096, 1024, 20, 5, 400
	return l
}

func newTree(t *testing.T, l Limits) *Tree {
	t.Helper()
	tree, err := NewTree(t.TempDir(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return tree
}

func newPackedTree(t *testing.T, l Limits) *Tree {
	t.Helper()
	write, read, err := packed.Temporary(t.TempDir(), "tree-")
	if err != nil {
		t.Fatal(err)
	}
	tree := NewPackedTree(write, read, l)
	t.Cleanup(func() {
		if err := errors.Join(write.Close(), tree.Close()); err != nil {
			t.Error(err)
		}
	})
	return tree
}

// contents returns all files of a tree, folders with a trailing slash, and fails on anything else or on other modes.
func contents(t *testing.T, files fs.FS) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch info.Mode() {
		case fs.ModeDir | 0o700, fs.ModeDir | 0o555: // packed
			found[path+"/"] = ""
		case 0o600, 0o444:
			data, err := fs.ReadFile(files, path)
			if err != nil {
				return err
			}
			found[path] = string(data)
		default:
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestNewTree(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ reason, dir string }{
		"Missing":  {"a folder that is not there is the caller's mistake", filepath.Join(full, "none")},
		"NotEmpty": {"what lies there already was never counted or checked", full},
		"File":     {"a file is no folder", filepath.Join(full, "x")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := NewTree(tc.dir, DefaultLimits()); err == nil {
				t.Errorf("%s: no error", tc.reason)
			}
		})
	}
}

func TestTreeWriteFile(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   string
		size   int
		want   Reason
	}{
		"Plain":        {"the normal case", "a/b.yaml", 10, ""},
		"AtFileLimit":  {"input at the limit is accepted", "a", 1024, ""},
		"OverFile":     {"one more is refused", "a", 1025, LimitExceeded},
		"DeepAtLimit":  {"five parts are allowed", "a/b/c/d/e", 1, ""},
		"TooDeep":      {"six are not", "a/b/c/d/e/f", 1, LimitExceeded},
		"LongPath":     {"the path has a bound of its own", strings.Repeat("a", 200) + "/" + strings.Repeat("b", 200), 1, LimitExceeded},
		"Outside":      {"nothing leaves the tree", "../a", 1, InvalidContent},
		"Folder":       {"a folder is not replaced", ".", 1, InvalidContent},
		"TrailingDots": {"dots inside a name are harmless", "a..b/..c", 1, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t, smallLimits())
			err := tree.WriteFile(tc.name, strings.NewReader(strings.Repeat("x", tc.size)))
			if got := ReasonOf(err); got != tc.want || (err == nil) != (tc.want == "") {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}

func TestTreeBudgetIsShared(t *testing.T) {
	tree := newTree(t, smallLimits())
	kilobyte := strings.Repeat("x", 1024)
	for _, name := range []string{"a", "b", "c"} {
		sub, err := tree.Sub(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := sub.WriteFile("f", strings.NewReader(kilobyte)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tree.WriteFile("a/f", strings.NewReader(kilobyte)); err != nil {
		t.Fatalf("4096 bytes are the limit: %v", err)
	}
	if err := tree.WriteFile("d", strings.NewReader("x")); ReasonOf(err) != LimitExceeded {
		t.Errorf("replacing a file must not refund its bytes: %v", err)
	}
	entries := newTree(t, smallLimits())
	for i := range 10 {
		if err := entries.WriteFile(string(rune('a'+i))+"/f", strings.NewReader("")); err != nil {
			t.Fatal(err)
		}
	}
	if err := entries.WriteFile("a/f", strings.NewReader("")); ReasonOf(err) != LimitExceeded {
		t.Errorf("ten folders and ten files are 20 entries: %v", err)
	}
}

func TestTreeMetered(t *testing.T) {
	limits := smallLimits()
	limits.DownloadBytes = 10
	tree := newTree(t, limits)
	if _, err := io.ReadAll(tree.Metered(strings.NewReader("12345"))); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(tree.Metered(strings.NewReader("67890"))); err != nil {
		t.Fatalf("ten bytes are the limit: %v", err)
	}
	if _, err := io.ReadAll(tree.Metered(strings.NewReader("x"))); ReasonOf(err) != LimitExceeded {
		t.Errorf("the budget is one for all transfers: %v", err)
	}
}

func TestTreeSub(t *testing.T) {
	tree := newTree(t, smallLimits())
	sub, err := tree.Sub("x/y")
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.WriteFile("f", strings.NewReader("1")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"x/": "", "x/y/": "", "x/y/f": "1"}
	if diff := cmp.Diff(want, contents(t, tree.FS())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"f": "1"}, contents(t, sub.FS())); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"..", "/x", "a/../b", "x/y/f"} {
		if _, err := tree.Sub(bad); ReasonOf(err) != InvalidContent {
			t.Errorf("destination %q: %v", bad, err)
		}
	}
}

func TestErrorReasons(t *testing.T) {
	limited := &Error{Reason: RateLimited, Err: errors.New("x"), RetryAfter: 30}
	described := Describe(limited, "image %s", "y")
	var typed *Error
	if !errors.As(described, &typed) || typed.RetryAfter != 30 || described.Error() != "image y: x" {
		t.Errorf("Describe lost something: %#v", described)
	}
	if Describe(nil, "x") != nil || ReasonOf(nil) != "" || ReasonOf(io.EOF) != "" {
		t.Error("an error without a reason got one")
	}
	if limited.Permanent() || !Errorf(DigestMismatch, "x").Permanent() {
		t.Error("Permanent is wrong")
	}
}

func TestM1QuoteIsPrintableAndShort(t *testing.T) {
	cases := map[string]struct{ reason, in, want string }{
		"Plain":   {"readable names stay readable", "a b/ü.yaml", `"a b/ü.yaml"`},
		"Control": {"a terminal must not be driven", "a\x1b[2J\n", `"a\x1b[2J\n"`},
		"Bidi":    {"text must not be turned around", "a\u202eb", `"a\u202eb"`},
		"Broken":  {"invalid UTF-8 is escaped", "a\xff", `"a\xff"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Quote(tc.in); got != tc.want {
				t.Errorf("%s: got %s", tc.reason, got)
			}
		})
	}
	for _, long := range []string{strings.Repeat("x", 255), strings.Repeat("\x00", 5000), strings.Repeat("界", 1000)} {
		if n := utf8.RuneCountInString(Quote(long)); n > 256 {
			t.Errorf("%d characters", n)
		}
	}
}
