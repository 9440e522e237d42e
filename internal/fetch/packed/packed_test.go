// SPDX-License-Identifier: Apache-2.0

package packed_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/fetch/packed"
)

var generous = packed.Limits{Bytes: 1 << 20, FileBytes: 1 << 10, Entries: 100}

func pack(t *testing.T, files fs.FS) *packed.FS {
	t.Helper()
	write, content, err := packed.Temporary(t.TempDir(), "a-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = content.Close() })
	index, err := packed.Pack(t.Context(), files, write, generous)
	if err = errors.Join(err, write.Close()); err != nil {
		t.Fatal(err)
	}
	read, err := packed.New(content, index)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestPackedFilesAreAFileSystem: the standard library's own checks of an fs.FS hold.
func TestPackedFilesAreAFileSystem(t *testing.T) {
	files := fstest.MapFS{
		"manifests/a.yaml": {Data: []byte("a")}, "manifests/deep/b.yaml": {Data: bytes.Repeat([]byte("b"), 1000)},
		"empty": {}, "metadata": {Mode: fs.ModeDir}, ".git/config": {Data: []byte("x")},
	}
	read := pack(t, files)
	if err := fstest.TestFS(read, "manifests/a.yaml", "manifests/deep/b.yaml", "empty", "metadata"); err != nil {
		t.Error(err)
	}
	if _, err := fs.Stat(read, ".git"); err == nil {
		t.Error(".git is packed")
	}
	for _, name := range []string{"manifests/a.yaml", "manifests/deep/b.yaml", "empty"} {
		got, err := fs.ReadFile(read, name)
		if err != nil || !bytes.Equal(got, files[name].Data) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

// TestLinksAreNotFollowed: they can be seen, also through fs.Sub, and lead nowhere.
func TestLinksAreNotFollowed(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "sub", "link")); err != nil {
		t.Fatal(err)
	}
	sub, err := fs.Sub(pack(t, os.DirFS(dir)), "sub")
	if err != nil {
		t.Fatal(err)
	}
	info, err := fs.Lstat(sub, "link")
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%v %v", info, err)
	}
	if _, err := fs.ReadFile(sub, "link"); err == nil {
		t.Error("the link was followed")
	}
}

// TestPackingIsBounded in every respect, one beyond the limit.
func TestPackingIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		files  fstest.MapFS
		limits packed.Limits
		says   string
	}{
		"bytes":   {fstest.MapFS{"a": {Data: make([]byte, 6)}, "b": {Data: make([]byte, 5)}}, packed.Limits{Bytes: 10, FileBytes: 10, Entries: 9}, "more than 10 bytes: give"},
		"file":    {fstest.MapFS{"a": {Data: make([]byte, 11)}}, packed.Limits{Bytes: 100, FileBytes: 10, Entries: 9}, "the file a has more than 10 bytes"},
		"entries": {fstest.MapFS{"a": {}, "b": {}, "c": {}}, packed.Limits{Bytes: 10, FileBytes: 10, Entries: 2}, "more than 2 files"},
	} {
		_, err := packed.Pack(t.Context(), c.files, &bytes.Buffer{}, c.limits)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDamagedIndexes are refused.
func TestDamagedIndexes(t *testing.T) {
	for name, index := range map[string][]packed.Entry{
		"outside":      {{Name: "../a"}},
		"absolute":     {{Name: "/a"}},
		"twice":        {{Name: "a"}, {Name: "a"}},
		"below a file": {{Name: "a"}, {Name: "a/b"}},
		"offset":       {{Name: "a", Offset: -1}},
	} {
		if _, err := packed.New(bytes.NewReader(nil), index); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestNothingStays of the temporary file, not even its name.
func TestNothingStays(t *testing.T) {
	dir := t.TempDir()
	write, read, err := packed.Temporary(dir, "a-")
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	defer read.Close()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v", left)
	}
	if _, err := read.Write([]byte("x")); err == nil {
		t.Error("what is read can be written")
	}
}
