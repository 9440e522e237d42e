// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/tests/formats"
	"github.com/satchel-dev/satchel/tests/installation"
	"github.com/satchel-dev/satchel/tests/page"
)

// outcome says what an error means.
func outcome(err error) string {
	var another *format.AnotherVersionError
	var damaged *format.DamagedError
	switch {
	case errors.As(err, &another):
		return "another version"
	case errors.As(err, &damaged):
		return "damaged"
	case err != nil:
		return err.Error()
	}
	return ""
}

func TestF56Format(t *testing.T) {
	of := format.Format{Kind: "snapshot", Version: 2}
	for name, c := range map[string]struct{ content, want string }{
		"this version":            {"satchel snapshot 2\nrest", ""},
		"a newer version":         {"satchel snapshot 3\nrest", "another version"},
		"an older version":        {"satchel snapshot 1\nrest", "another version"},
		"more digits":             {"satchel snapshot 21\nrest", "another version"},
		"another kind":            {"satchel pins 2\nrest", "damaged"},
		"no version":              {"satchel snapshot x\nrest", "damaged"},
		"cut in the version":      {"satchel snapshot 2", "damaged"},
		"of before there was one": {`{"revision":"v1"}`, "damaged"},
		"empty":                   {"", "damaged"},
		"zeros":                   {"\x00\x00\x00", "damaged"},
		"a long line":             {strings.Repeat("x", 1<<20) + "\nrest", "damaged"},
	} {
		rest, err := of.Cut([]byte(c.content))
		if got := outcome(err); got != c.want || err == nil && string(rest) != "rest" {
			t.Errorf("%s: %q (%q), want %q", name, got, rest, c.want)
		}
	}
	for name, c := range map[string]struct{ text, want string }{
		"this version":     {of.Text("rest"), ""},
		"a newer version":  {"snapshot/3:rest", "another version"},
		"an older version": {"snapshot/1:rest", "another version"},
		"another kind":     {"pins/2:rest", "damaged"},
		"no version":       {"snapshot:rest", "damaged"},
		"the content only": {"rest", "damaged"},
		"empty":            {"", "damaged"},
	} {
		rest, err := of.CutText(c.text)
		if got := outcome(err); got != c.want || err == nil && rest != "rest" {
			t.Errorf("text, %s: %q (%q), want %q", name, got, rest, c.want)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add([]byte(format.Snapshot.Line()))
	f.Add([]byte("satchel snapshot 3\nrest"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if rest, err := format.Snapshot.Cut(format.Snapshot.Prepend(content)); err != nil || string(rest) != string(content) {
			t.Errorf("%q became %q (%v)", content, rest, err)
		}
		if rest, err := format.Snapshot.CutText(format.Snapshot.Text(string(content))); err != nil || rest != string(content) {
			t.Errorf("%q became %q (%v)", content, rest, err)
		}
		_, _ = format.Snapshot.Cut(content)
		_, _ = format.Snapshot.CutText(string(content))
	})
}

// Each format has examples in the testdata of the packages that store it, and nothing else has one. See formats.Golden.
func TestF56EachFormatHasAnExample(t *testing.T) {
	found := map[string][]string{}
	root := installation.Root()
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Base(filepath.Dir(name)) == formats.Folder {
			found[entry.Name()] = append(found[entry.Name()], name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, f := range format.All() {
		file := filepath.Base(formats.Name(f))
		if len(found[file]) == 0 || kinds[f.Kind] {
			t.Errorf("%s has no example %s (formats.Golden writes it), or is listed twice", f, file)
		}
		kinds[f.Kind] = true
		delete(found, file)
	}
	for file, names := range found {
		t.Errorf("%s is an example of no format in the table, or of a former version: remove %v", file, names)
	}
}

// The page lists the table as it is.
func TestF56Page(t *testing.T) {
	var rows []string
	for line := range strings.Lines(page.Read(t, "dev/formats.md")) {
		if strings.HasPrefix(line, "| `") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	var want []string
	for _, f := range format.All() {
		want = append(want, "| `"+f.Kind+"` | "+f.String()[len(f.Kind)+1:]+" | "+f.Where+" | "+f.Otherwise+" |")
	}
	if !slices.Equal(rows, want) {
		t.Errorf("docs/dev/formats.md lists other formats; the rows are:\n%s", strings.Join(want, "\n"))
	}
}
