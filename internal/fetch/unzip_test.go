// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// zipEntry is one entry of an archive that is built for a test.
type zipEntry struct {
	name    string
	content string
	mode    fs.FileMode
}

func zipOf(t testing.TB, entries ...zipEntry) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := zip.NewWriter(&buffer)
	for _, entry := range entries {
		header := &zip.FileHeader{Name: entry.name, Method: zip.Deflate}
		header.SetMode(entry.mode)
		file, err := w.CreateHeader(header)
		if err == nil {
			_, err = io.WriteString(file, entry.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func unzipInto(t testing.TB, l Limits, data []byte) (map[string]string, error) {
	t.Helper()
	tree, err := NewTree(t.TempDir(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tree.Close() }()
	err = tree.Unzip(context.Background(), bytes.NewReader(data), int64(len(data)))
	files := map[string]string{}
	walked := fs.WalkDir(tree.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree.FS(), path)
		files[path] = string(content)
		return err
	})
	if walked != nil {
		t.Fatal(walked)
	}
	return files, err
}

func TestUnzip(t *testing.T) {
	good := zipOf(t, zipEntry{"d/", "", fs.ModeDir | 0o755}, zipEntry{"d/a", "1", 0o4777}, zipEntry{"link", "d/a", fs.ModeSymlink | 0o777},
		zipEntry{"b", "first", 0o600}, zipEntry{"b", "second", 0}, zipEntry{"new/c", "", 0o644})
	files, err := unzipInto(t, DefaultLimits(), good)
	if diff := cmp.Diff(map[string]string{"d/a": "1", "b": "second", "new/c": ""}, files); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

// TestM1M6Zip: the same rules as for tar, and nothing stays.
func TestM1M6Zip(t *testing.T) {
	tiny := DefaultLimits()
	tiny.Entries, tiny.FileBytes, tiny.ExtractedBytes = 3, 100, 150
	zeros := strings.Repeat("\x00", 101)
	damaged := zipOf(t, zipEntry{"a", "hello hello hello", 0})
	damaged[40] ^= 0xff
	checksum := bytes.Replace(zipOf(t, zipEntry{"a", "stored", 0}), []byte{0x78}, []byte{0x78}, 1)
	binary.LittleEndian.PutUint32(checksum[bytes.LastIndex(checksum, []byte("PK\x01\x02"))+16:], 1)
	encrypted := zipOf(t, zipEntry{"a", "1", 0})
	encrypted[bytes.LastIndex(encrypted, []byte("PK\x01\x02"))+8] |= 1
	tests := map[string]struct {
		data []byte
		want Reason
		text string
	}{
		"escape":      {zipOf(t, zipEntry{"ok", "1", 0}, zipEntry{"../x", "1", 0}), InvalidContent, `archive entry "../x": its name leads out`},
		"absolute":    {zipOf(t, zipEntry{"/x", "1", 0}), InvalidContent, "absolute"},
		"backslash":   {zipOf(t, zipEntry{`a\..\x`, "1", 0}), InvalidContent, "backslash"},
		"drive":       {zipOf(t, zipEntry{"C:x", "1", 0}), InvalidContent, "drive"},
		"control":     {zipOf(t, zipEntry{"a\x1b[0m", "1", 0}), InvalidContent, `\x1b`},
		"device":      {zipOf(t, zipEntry{"a", "", fs.ModeDevice}), InvalidContent, "its type"},
		"fifo":        {zipOf(t, zipEntry{"a", "", fs.ModeNamedPipe}), InvalidContent, "its type"},
		"folder file": {zipOf(t, zipEntry{"a", "", fs.ModeDir}), InvalidContent, "name of a folder"},
		"over folder": {zipOf(t, zipEntry{"a/b", "", 0}, zipEntry{"a", "", 0}), InvalidContent, "same name"},
		"entries":     {zipOf(t, zipEntry{"a", "", 0}, zipEntry{"b", "", 0}, zipEntry{"c", "", 0}, zipEntry{"d", "", 0}), LimitExceeded, "more than 3 files"},
		"file":        {zipOf(t, zipEntry{"a", zeros, 0}), LimitExceeded, "limit for one file"},
		"sum":         {zipOf(t, zipEntry{"a", zeros[:90], 0}, zipEntry{"b", zeros[:90], 0}), LimitExceeded, "150 bytes unpacked"},
		"damaged":     {damaged, InvalidContent, "damaged"},
		"checksum":    {checksum, InvalidContent, "damaged"},
		"encrypted":   {encrypted, InvalidContent, "encrypted"},
		"cut":         {zipOf(t, zipEntry{"a", "1", 0})[:60], InvalidContent, "damaged"},
		"nothing":     {nil, InvalidContent, "damaged"},
	}
	for name, tt := range tests {
		files, err := unzipInto(t, tiny, tt.data)
		if ReasonOf(err) != tt.want || !strings.Contains(err.Error(), tt.text) || len(files) > 0 {
			t.Errorf("%s: %v, %v", name, files, err)
		}
	}
}

// manyEntries is a directory of n entries that all say they are the same empty file, without the entries, under an
// end record that tells of few.
func manyEntries(n int) []byte {
	entry := make([]byte, 46+1)
	copy(entry, "PK\x01\x02")
	binary.LittleEndian.PutUint16(entry[28:], 1)
	entry[46] = 'a'
	data := append([]byte("PK\x03\x04"), bytes.Repeat(entry, n)...)
	end := make([]byte, 22)
	copy(end, "PK\x05\x06")
	binary.LittleEndian.PutUint16(end[8:], uint16(n))  //nolint:gosec // cut on purpose
	binary.LittleEndian.PutUint16(end[10:], uint16(n)) //nolint:gosec // cut on purpose
	binary.LittleEndian.PutUint32(end[12:], uint32(47*n))
	binary.LittleEndian.PutUint32(end[16:], 4)
	return append(data, end...)
}

// TestM4ZipDirectoryIsBounded: a million entries cost no more memory than the limit allows for.
func TestM4ZipDirectoryIsBounded(t *testing.T) {
	data := manyEntries(1_000_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := unzipInto(t, DefaultLimits(), data)
	runtime.ReadMemStats(&after)
	allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
	t.Logf("%d MiB of archive, %d MiB allocated", len(data)>>20, allocated)
	if ReasonOf(err) != LimitExceeded || allocated > 6*64 {
		t.Errorf("%d MiB allocated: %v", allocated, err)
	}
}

func TestUntarZstd(t *testing.T) {
	tree, err := NewTree(t.TempDir(), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	failing := io.MultiReader(strings.NewReader("\x28\xb5\x2f\xfd"), &failingReader{})
	if err := tree.UntarZstd(t.Context(), failing); !errors.Is(err, errBroken) {
		t.Errorf("a source that fails: %v", err)
	}
	if err := tree.UntarZstd(t.Context(), strings.NewReader("\x28\xb5\x2f\xfdxxxxxxxx")); ReasonOf(err) != InvalidContent {
		t.Errorf("garbage: %v", err)
	}
}

var errBroken = errors.New("the line is broken")

type failingReader struct{}

func (*failingReader) Read([]byte) (int, error) { return 0, errBroken }

func FuzzUnzip(f *testing.F) {
	f.Add(zipOf(f, zipEntry{"a/b", "1", 0}, zipEntry{"link", "a", fs.ModeSymlink}))
	f.Add(zipOf(f, zipEntry{"../x", "1", 0}))
	f.Add(manyEntries(10))
	limits := DefaultLimits()
	limits.ExtractedBytes, limits.Entries = 1<<20, 100
	f.Fuzz(func(t *testing.T, data []byte) {
		files, err := unzipInto(t, limits, data)
		if err != nil && len(files) > 0 {
			t.Errorf("%v stayed after %v", files, err)
		}
		if err != nil && ReasonOf(err) == "" {
			t.Errorf("no reason: %v", err)
		}
	})
}
