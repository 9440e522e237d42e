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
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
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
	method := zipOf(t, zipEntry{"a", "1", 0})
	binary.LittleEndian.PutUint16(method[bytes.LastIndex(method, []byte("PK\x01\x02"))+10:], 12)
	before := zipOf(t, zipEntry{"a", "1", 0}) // with a directory of the larger format, with offsets of 64 bits
	at := bytes.LastIndex(before, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(before[at+42:], 1<<32-1)
	extra := append([]byte{1, 0, 8, 0}, bytes.Repeat([]byte{0xff}, 8)...)
	binary.LittleEndian.PutUint16(before[at+30:], uint16(len(extra)))
	end := bytes.LastIndex(before, []byte(zipEnd))
	binary.LittleEndian.PutUint32(before[end+12:], uint32(end-at+len(extra))) //nolint:gosec // few
	before = slices.Insert(before, at+47, extra...)
	tests := map[string]struct {
		data []byte
		want Reason
		text string
	}{
		"before":      {before, InvalidContent, "damaged"},
		"garbage":     {append(zipOf(t, zipEntry{"a", "1", 0}), 'x'), InvalidContent, "data follows the end"},
		"zeros":       {append(zipOf(t, zipEntry{"a", "1", 0}), make([]byte, 30)...), InvalidContent, "data follows the end"},
		"two of them": {append(zipOf(t, zipEntry{"a", "1", 0}), zipOf(t)[:20]...), InvalidContent, ""},
		"bzip2":       {method, InvalidContent, "use deflate"},
		"bomb":        {overlapping(t, 20, 90), LimitExceeded, "150 bytes unpacked"},
		"latin":       {zipOf(t, zipEntry{"a\xe4", "1", 0}), InvalidContent, "UTF-8"},
		"link out":    {zipOf(t, zipEntry{"../a", "b", fs.ModeSymlink}), InvalidContent, "leads out"},
		"link over":   {zipOf(t, zipEntry{"a/b", "", 0}, zipEntry{"a", "/tmp", fs.ModeSymlink}), InvalidContent, "a link would replace a folder"},
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

// overlapping is an archive of which so many entries are one and the same file of zeros.
func overlapping(t testing.TB, count, size int) []byte {
	t.Helper()
	one := zipOf(t, zipEntry{"a", strings.Repeat("\x00", size), 0})
	at := bytes.LastIndex(one, []byte("PK\x01\x02"))
	end := bytes.LastIndex(one, []byte(zipEnd))
	entry, record := one[at:end], bytes.Clone(one[end:])
	data := bytes.Clone(one[:at])
	for i := range count {
		data = append(data, bytes.Replace(entry, []byte("a"), []byte{byte('a' + i)}, 1)...) //nolint:gosec // a letter
	}
	binary.LittleEndian.PutUint16(record[8:], uint16(count))             //nolint:gosec // few
	binary.LittleEndian.PutUint16(record[10:], uint16(count))            //nolint:gosec // few
	binary.LittleEndian.PutUint32(record[12:], uint32(count*len(entry))) //nolint:gosec // few
	return append(data, record...)
}

// TestM3ZipOfOneFile has a bomb of entries that share their bytes.
func TestM3ZipOfOneFile(t *testing.T) {
	limits := DefaultLimits()
	limits.ExtractedBytes = 10 << 20
	bomb := overlapping(t, 20, 1<<20)
	if files, err := unzipInto(t, limits, bomb); ReasonOf(err) != LimitExceeded || len(files) > 0 || len(bomb) > 10<<10 {
		t.Errorf("%d files of %d bytes: %v", len(files), len(bomb), err)
	}
}

// TestM6ZipComment: what belongs to the archive is no garbage, and a comment may hold anything.
func TestM6ZipComment(t *testing.T) {
	data := zipOf(t, zipEntry{"a", "1", 0})
	for _, comment := range []string{"a comment", zipEnd + strings.Repeat("\x00", 18), strings.Repeat("x", 65535)} {
		data := bytes.Clone(data)
		binary.LittleEndian.PutUint16(data[len(data)-2:], uint16(len(comment))) //nolint:gosec // at most 65535
		files, err := unzipInto(t, DefaultLimits(), append(data, comment...))
		if strings.HasPrefix(comment, zipEnd) { // two readers may see two archives
			if ReasonOf(err) != InvalidContent && len(files) > 0 {
				t.Errorf("%.20q: %v, %v", comment, files, err)
			}
			continue
		}
		if err != nil || files["a"] != "1" {
			t.Errorf("%.20q: %v, %v", comment, files, err)
		}
	}
}

// TestM29TenWindows: ten archives that are unpacked at once take what ten windows take, whatever they expand to.
func TestM29TenWindows(t *testing.T) {
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed, zstd.WithWindowSize(maxWindow))
	if err == nil {
		_, err = io.CopyN(w, zeros{}, 256<<20)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 10 {
		r, err := decompress(bytes.NewReader(packed.Bytes()), Zstd)
		if err == nil {
			defer func() { _ = r.Close() }()
			_, err = io.CopyN(io.Discard, r, 64<<20)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&during)
	if held := (int64(during.HeapAlloc) - int64(before.HeapAlloc)) >> 20; held > 200 { //nolint:gosec // a heap
		t.Errorf("ten open archives hold %d MiB", held)
	} else {
		t.Logf("ten open archives hold %d MiB", held)
	}
}

// TestM6Zstd: the same rules as for gzip, but that there may be several frames.
func TestM6Zstd(t *testing.T) {
	plain := archive(t, file("a", strings.Repeat("x", 5000)))
	encode := func(data []byte, options ...zstd.EOption) []byte {
		w, err := zstd.NewWriter(nil, options...)
		if err != nil {
			t.Fatal(err)
		}
		return w.EncodeAll(data, nil)
	}
	whole := encode(plain)
	skippable := append([]byte{0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0}, "skip"...)
	badSum := bytes.Clone(whole)
	badSum[len(badSum)-1] ^= 1
	cases := map[string]struct {
		reason string
		packed []byte
		want   Reason
	}{
		"Good":      {"the normal case", whole, ""},
		"Frames":    {"as parallel compressors write", slices.Concat(encode(plain[:700]), encode(plain[700:])), ""},
		"Skippable": {"metadata of some tool", slices.Concat(skippable, whole, skippable), ""},
		"Empty":     {"nothing in it", encode(nil), InvalidContent},
		"Truncated": {"the end is missing", whole[:len(whole)/2], InvalidContent},
		"NoSum":     {"the checksum is missing", whole[:len(whole)-4], InvalidContent},
		"BadSum":    {"the checksum is wrong", badSum, InvalidContent},
		"Garbage":   {"something follows", append(bytes.Clone(whole), "garbage"...), InvalidContent},
		"Twice":     {"two archives", slices.Concat(whole, whole), InvalidContent},
		"Window":    {"64 MiB of memory to unpack it", append([]byte("\x28\xb5\x2f\xfd\x00\x80"), "\x01\x00\x00"...), LimitExceeded},
		"WindowM29": {"9 MiB of memory to unpack it", append([]byte("\x28\xb5\x2f\xfd\x00\x69"), "\x01\x00\x00"...), LimitExceeded},
		"Window8":   {"8 MiB is what decoders support", encode(plain, zstd.WithWindowSize(8<<20), zstd.WithSingleSegment(false)), ""},
		"WindowMax": {"terabytes of memory to unpack it", append([]byte("\x28\xb5\x2f\xfd\x00\xff"), "\x01\x00\x00"...), LimitExceeded},
		"Single":    {"terabytes of content are declared", append([]byte("\x28\xb5\x2f\xfd\xe0"), "\xff\xff\xff\xff\xff\xff\xff\x0f\x01\x00\x00"...), InvalidContent},
		"Dict":      {"an unknown dictionary", append([]byte("\x28\xb5\x2f\xfd\x01\x58\x07"), "\x01\x00\x00"...), InvalidContent},
		"Zstd":      {"only one layer is unpacked", encode(whole), InvalidContent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t, DefaultLimits())
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := tree.UntarZstd(t.Context(), bytes.NewReader(tc.packed))
			runtime.ReadMemStats(&after)
			if ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") {
				t.Errorf("%s: got %v", tc.reason, err)
			}
			if got := contents(t, tree.FS()); err != nil && len(got) > 0 {
				t.Errorf("something stayed: %v", got)
			}
			if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 2*maxWindow>>20 {
				t.Errorf("%s: %d MiB allocated", tc.reason, grown)
			}
		})
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
