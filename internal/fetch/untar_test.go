// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// file, dir and link are entries of a test archive.
func file(name, data string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Xattrs: nil, Linkname: data}
}

func dir(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name} }

func link(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
}

func hard(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target}
}

// archive packs entries; the data of a file is carried in Linkname.
func archive(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, h := range headers {
		data := ""
		if h.Typeflag == tar.TypeReg {
			data, h.Linkname = h.Linkname, ""
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// rename puts a name that tar.Writer would not write into the first header of an archive.
func rename(packed []byte, name string) []byte {
	copy(packed[:100], make([]byte, 100))
	copy(packed, name)
	return checksum(packed)
}

// checksum repairs the checksum of the first header.
func checksum(packed []byte) []byte {
	copy(packed[148:156], "        ")
	sum := 0
	for _, b := range packed[:512] {
		sum += int(b)
	}
	copy(packed[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return packed
}

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func TestM1TarNames(t *testing.T) {
	cases := map[string]struct{ reason, name string }{
		"Parent":          {"leaves the archive", "../x"},
		"ParentInside":    {"leaves it on a detour", "a/../../x"},
		"ParentHarmless":  {"comes back, but nobody honest writes it", "a/../x"},
		"OnlyParent":      {"names the folder outside", ".."},
		"OnlyDot":         {"a file cannot be the root", "."},
		"Absolute":        {"leaves the archive", "/abs"},
		"Backslash":       {"leaves it on another system", `a\..\x`},
		"Drive":           {"leaves it on another system", "C:x"},
		"Control":         {"drives a terminal", "a\x1bb"},
		"Newline":         {"forges log lines", "a\nb"},
		"RightToLeft":     {"shows another name than it has", "a\u202egpj.yaml"},
		"ZeroWidth":       {"two names look alike", "a\u200bb"},
		"BrokenUTF8":      {"no text", "a\xffb"},
		"Component300":    {"longer than file systems store", strings.Repeat("a", 300)},
		"Path5000":        {"longer than any real path", strings.Repeat("abc/", 1250) + "x"},
		"Empty":           {"names nothing", ""},
		"Dash":            {"becomes an option of somebody's command", "-rf"},
		"DashInside":      {"the same one folder down", "a/-rf"},
		"FileWithSlash":   {"a file is no folder", "a/"},
		"DoubleSlash":     {"has an empty part", "a//b"},
		"DotInside":       {"has an empty part", "a/./b"},
		"DoubleSlashRoot": {"absolute in disguise", ".//etc"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var packed []byte
			if len(tc.name) < 100 {
				packed = append(archive(t, file("good", "1"))[:1024], rename(archive(t, file("x", "2")), tc.name)...)
			} else {
				packed = archive(t, file("good", "1"), file(tc.name, "2"))
			}
			tree := newTree(t, DefaultLimits())
			err := tree.Untar(context.Background(), bytes.NewReader(packed))
			if r := ReasonOf(err); r != InvalidContent && r != LimitExceeded {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
			if !strings.Contains(err.Error(), "archive entry "+Quote(tc.name)) || len([]rune(err.Error())) > 400 {
				t.Errorf("the entry is not named, or at length: %v", err)
			}
			if got := contents(t, tree.FS()); len(got) > 0 {
				t.Errorf("something stayed: %v", got)
			}
		})
	}
}

func TestM1NULInPAXName(t *testing.T) {
	packed := archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "näme", Format: tar.FormatPAX})
	packed = bytes.Replace(packed, []byte("path=n\xc3\xa4me"), []byte("path=n\x00\x00me"), 1)
	err := newTree(t, DefaultLimits()).Untar(context.Background(), bytes.NewReader(packed))
	if ReasonOf(err) != InvalidContent {
		t.Errorf("a name with a NUL: %v", err)
	}
}

func TestUntarAccepts(t *testing.T) {
	cases := map[string]struct {
		reason  string
		entries []tar.Header
		want    map[string]string
	}{
		"DotSlash": {
			"`tar -c .` writes names that way",
			[]tar.Header{dir("./"), dir("./a/"), file("./a/b", "1")},
			map[string]string{"a/": "", "a/b": "1"},
		},
		"NoFolders": {
			"folders need no entries of their own",
			[]tar.Header{file("a/b/c", "1")},
			map[string]string{"a/": "", "a/b/": "", "a/b/c": "1"},
		},
		"Later": {
			"a later file replaces an earlier one, also a longer one",
			[]tar.Header{file("a", "long"), file("a", "2")},
			map[string]string{"a": "2"},
		},
		"Modes": {
			"modes are normalised: see contents",
			[]tar.Header{
				{Typeflag: tar.TypeDir, Name: "d", Mode: 0},
				{Typeflag: tar.TypeReg, Name: "d/f", Mode: 0o7777, ModTime: time.Unix(0, 0)},
				{Typeflag: tar.TypeReg, Name: "g", Mode: 0, ModTime: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)},
				{Typeflag: tar.TypeReg, Name: "h", Mode: 0o600, PAXRecords: map[string]string{"SCHILY.xattr.user.x": "y"}},
			},
			map[string]string{"d/": "", "d/f": "", "g": "", "h": ""},
		},
		"GlobalHeader": {
			"git archive begins with one",
			[]tar.Header{
				{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "abc"}},
				file("a", "1"),
			},
			map[string]string{"a": "1"},
		},
		"Nothing": {"an archive may be empty", nil, map[string]string{}},
	}
	for name, tc := range cases {
		t.Run("M5"+name, func(t *testing.T) {
			tree := newTree(t, DefaultLimits())
			if err := tree.Untar(context.Background(), bytes.NewReader(archive(t, tc.entries...))); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, contents(t, tree.FS())); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

func TestM2LinksAreSkipped(t *testing.T) {
	cases := map[string]struct {
		reason  string
		entries []tar.Header
		want    map[string]string
		refused bool
	}{
		"Inside":     {"not created", []tar.Header{file("a", "1"), link("b", "a")}, map[string]string{"a": "1"}, false},
		"Outside":    {"not created", []tar.Header{link("b", "../../etc/passwd")}, map[string]string{}, false},
		"Absolute":   {"not created", []tar.Header{link("b", "/etc/passwd")}, map[string]string{}, false},
		"Cycle":      {"not followed", []tar.Header{link("a", "b"), link("b", "a")}, map[string]string{}, false},
		"Through":    {"a file through it lands in a folder", []tar.Header{link("a", "/tmp"), file("a/x", "1")}, map[string]string{"a/": "", "a/x": "1"}, false},
		"HardEarly":  {"not created", []tar.Header{file("a", "1"), hard("b", "a")}, map[string]string{"a": "1"}, false},
		"HardAbsent": {"not looked at", []tar.Header{hard("b", "none")}, map[string]string{}, false},
		"HardOut":    {"not looked at", []tar.Header{hard("b", "/etc/passwd")}, map[string]string{}, false},
		"OverFile":   {"the file it replaces is gone", []tar.Header{file("a", "1"), link("a", "b")}, map[string]string{}, false},
		"OverFolder": {"a folder is not replaced", []tar.Header{file("a/b", "1"), link("a", "/tmp")}, nil, true},
		"EvilName":   {"its name is checked as any other", []tar.Header{link("../a", "b")}, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t, DefaultLimits())
			err := tree.Untar(context.Background(), bytes.NewReader(archive(t, tc.entries...)))
			if tc.refused {
				if ReasonOf(err) != InvalidContent {
					t.Errorf("%s: got %v", tc.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, contents(t, tree.FS())); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

func TestM3BombsStopAtTheCap(t *testing.T) {
	cases := map[string]struct {
		reason string
		file   int64
		count  int
	}{
		"OneFile":   {"1 GiB of zeros is 1 MiB compressed", 1 << 30, 1},
		"ManyFiles": {"each is small enough, all together are not", 1 << 20, 200},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limits := DefaultLimits()
			limits.ExtractedBytes, limits.FileBytes = 64<<20, 32<<20
			tree := newTree(t, limits)
			produced := int64(0)
			r, w := io.Pipe()
			go func() {
				unzipped := gzip.NewWriter(w)
				packed := tar.NewWriter(countWriter{unzipped, &produced})
				for i := range tc.count {
					if packed.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprint(i), Size: tc.file}) != nil {
						return
					}
					if _, err := io.CopyN(packed, zeros{}, tc.file); err != nil {
						return
					}
				}
				_ = w.CloseWithError(errors.Join(packed.Close(), unzipped.Close()))
			}()
			err := tree.UntarGzip(context.Background(), r)
			_ = r.Close()
			if ReasonOf(err) != LimitExceeded {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
			if got := contents(t, tree.FS()); len(got) > 0 {
				t.Errorf("%d entries stayed", len(got))
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type countWriter struct {
	io.Writer
	n *int64
}

func (c countWriter) Write(p []byte) (int, error) { *c.n += int64(len(p)); return c.Writer.Write(p) }

func TestM3EndlessHeaders(t *testing.T) {
	header := archive(t, tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": strings.Repeat("x", 900<<10)}})
	header = header[:len(header)-1024]
	limits := smallLimits()
	tree := newTree(t, limits)
	err := tree.Untar(context.Background(), io.MultiReader(bytes.NewReader(header), bytes.NewReader(header)))
	if ReasonOf(err) != LimitExceeded {
		t.Errorf("headers without content must not be endless: %v", err)
	}
	padded := append(archive(t, file("a", "1")), make([]byte, streamBytes(limits))...)
	if err := newTree(t, limits).Untar(context.Background(), bytes.NewReader(padded)); ReasonOf(err) != LimitExceeded {
		t.Errorf("zeros after the end must not be endless: %v", err)
	}
}

func TestM4Entries(t *testing.T) {
	limits := DefaultLimits()
	pack := func(n int) []byte {
		headers := make([]tar.Header, 0, n)
		for i := range n {
			headers = append(headers, file(fmt.Sprintf("f%d", i), ""))
		}
		return archive(t, headers...)
	}
	few := limits
	few.Entries = 500
	if err := newTree(t, few).Untar(context.Background(), bytes.NewReader(pack(few.Entries))); err != nil {
		t.Fatalf("entries at the limit: %v", err)
	}
	tree := newTree(t, limits)
	begin := time.Now()
	err := tree.Untar(context.Background(), bytes.NewReader(pack(limits.Entries+1)))
	if ReasonOf(err) != LimitExceeded {
		t.Fatalf("one entry more: %v", err)
	}
	t.Logf("refused %d entries in %v", limits.Entries+1, time.Since(begin))
	if got := contents(t, tree.FS()); len(got) > 0 {
		t.Errorf("%d entries stayed", len(got))
	}
	for name, packed := range map[string][]byte{
		"Same":    archive(t, slicesRepeat(file("same", ""), smallLimits().Entries+1)...),
		"Folders": archive(t, slicesRepeat(dir("same"), smallLimits().Entries+1)...),
		"Links":   archive(t, slicesRepeat(link("same", "x"), smallLimits().Entries+1)...),
		"Deep":    archive(t, file(strings.Repeat("d/", 1000)+"x", "")),
	} {
		if err := newTree(t, smallLimits()).Untar(context.Background(), bytes.NewReader(packed)); ReasonOf(err) != LimitExceeded {
			t.Errorf("%s: entries count although they leave one file: %v", name, err)
		}
	}
}

func slicesRepeat(h tar.Header, n int) []tar.Header {
	all := make([]tar.Header, n)
	for i := range all {
		all[i] = h
	}
	return all
}

func TestM5Headers(t *testing.T) {
	cases := map[string]struct {
		reason string
		packed []byte
		want   Reason
	}{
		"GNUSparse": {"holes cost nothing to write and much to read", checksum(func() []byte {
			packed := archive(t, file("a", "1"))
			packed[156] = tar.TypeGNUSparse
			copy(packed[257:265], "ustar  \x00")
			return packed
		}()), InvalidContent},
		"PAXSparse":      {"the same in the newer form", sparseArchive(t), InvalidContent},
		"Char":           {"devices are not content", archive(t, tar.Header{Typeflag: tar.TypeChar, Name: "a"}), InvalidContent},
		"Block":          {"devices are not content", archive(t, tar.Header{Typeflag: tar.TypeBlock, Name: "a"}), InvalidContent},
		"Fifo":           {"reading one would block", archive(t, tar.Header{Typeflag: tar.TypeFifo, Name: "a"}), InvalidContent},
		"Unknown":        {"nobody knows what it is", withType(t, 'Z'), InvalidContent},
		"Contiguous":     {"nobody uses it", withType(t, tar.TypeCont), InvalidContent},
		"Negative":       {"sizes are not negative", withSize(t, "-0000000001"), InvalidContent},
		"Huge":           {"8 GiB are declared", withSize(t, "77777777777"), LimitExceeded},
		"Short":          {"less data than declared", archive(t, file("a", strings.Repeat("x", 1000)))[:1000], InvalidContent},
		"CutInPadding":   {"the rest after the data is missing", archive(t, file("a", "1"))[:520], InvalidContent},
		"CutBetween":     {"cut between two entries", archive(t, file("a", "1"), file("b", "2"))[:1024], InvalidContent},
		"OneZeroBlock":   {"half of the end marker", archive(t, file("a", "1"))[:1536], InvalidContent},
		"Nothing":        {"no archive at all", nil, InvalidContent},
		"BadSum":         {"a damaged header", append([]byte("b"), archive(t, file("a", "1"))[1:]...), InvalidContent},
		"HugePAX":        {"an extended header of 100 MiB", withTypeAndSize(t, tar.TypeXHeader, "00620000000"), InvalidContent},
		"FolderThenFile": {"a file does not replace a folder", archive(t, file("a/b", ""), file("a", "")), InvalidContent},
		"FileThenFolder": {"a folder does not replace a file", archive(t, file("a", ""), file("a/b", "")), InvalidContent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t, DefaultLimits())
			err := tree.Untar(context.Background(), bytes.NewReader(tc.packed))
			if ReasonOf(err) != tc.want {
				t.Errorf("%s: got %v", tc.reason, err)
			}
			if got := contents(t, tree.FS()); len(got) > 0 {
				t.Errorf("something stayed: %v", got)
			}
		})
	}
}

func withType(t *testing.T, flag byte) []byte { return withTypeAndSize(t, flag, "00000000000") }

func withSize(t *testing.T, size string) []byte { return withTypeAndSize(t, tar.TypeReg, size) }

func withTypeAndSize(t *testing.T, flag byte, size string) []byte {
	t.Helper()
	packed := archive(t, file("a", ""))
	packed[156] = flag
	copy(packed[124:136], size+"\x00")
	return checksum(packed)
}

// sparseArchive declares 10 GiB in one PAX sparse file of version 1.0.
func sparseArchive(t *testing.T) []byte {
	t.Helper()
	packed := archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "a", Format: tar.FormatPAX, PAXRecords: map[string]string{
		"XXX.sparse.major": "1", "XXX.sparse.minor": "0", "XXX.sparse.realsize": "10737418240", "XXX.sparse.name": "a",
	}, Size: 512, Linkname: "0\n" + strings.Repeat("\x00", 510)})
	return bytes.ReplaceAll(packed, []byte("XXX.sparse"), []byte("GNU.sparse"))
}

func TestM6Gzip(t *testing.T) {
	plain := archive(t, file("a", strings.Repeat("x", 5000)))
	whole := zipped(t, plain)
	badSum := bytes.Clone(whole)
	badSum[len(badSum)-5] ^= 1
	badBody := bytes.Clone(whole)
	badBody[len(badBody)/2] ^= 0xff
	cases := map[string]struct {
		reason string
		packed []byte
		want   Reason
	}{
		"Good":        {"the normal case", whole, ""},
		"Truncated":   {"the end is missing", whole[:len(whole)/2], InvalidContent},
		"NoTrailer":   {"only the checksum is missing", whole[:len(whole)-8], InvalidContent},
		"BadCRC":      {"seen only by who reads to the end", badSum, InvalidContent},
		"BadBody":     {"damaged in the middle", badBody, InvalidContent},
		"Garbage":     {"something follows", append(bytes.Clone(whole), "garbage"...), InvalidContent},
		"Zeros":       {"even zeros", append(bytes.Clone(whole), 0), InvalidContent},
		"Multistream": {"a second member", append(bytes.Clone(whole), whole...), InvalidContent},
		"EmptyMember": {"even an empty one", append(bytes.Clone(whole), zipped(t, nil)...), InvalidContent},
		"PlainTar":    {"not compressed at all", plain, InvalidContent},
		"Zip":         {"another format", []byte("PK\x03\x04 and so on"), InvalidContent},
		"Empty":       {"nothing at all", nil, InvalidContent},
		"GzipInGzip":  {"only one layer is unpacked", zipped(t, whole), InvalidContent},
		"TarMore":     {"whole blocks follow inside", zipped(t, append(append(bytes.Clone(plain), bytes.Repeat([]byte("g"), 512)...), make([]byte, 1024)...)), InvalidContent},
		"TarGarbage":  {"something follows inside", zipped(t, append(bytes.Clone(plain), "x"...)), InvalidContent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t, DefaultLimits())
			err := tree.UntarGzip(context.Background(), bytes.NewReader(tc.packed))
			if ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
			if got := contents(t, tree.FS()); err != nil && len(got) > 0 {
				t.Errorf("something stayed: %v", got)
			}
		})
	}
}

func TestUntarReportsItsSource(t *testing.T) {
	whole := zipped(t, archive(t, file("a", strings.Repeat("x", 5000))))
	cause := Errorf(Unreachable, "the transfer was cut: %w", io.ErrUnexpectedEOF)
	err := newTree(t, DefaultLimits()).UntarGzip(context.Background(),
		io.MultiReader(bytes.NewReader(whole[:40]), failing{cause}))
	if ReasonOf(err) != Unreachable {
		t.Errorf("a cut transfer is no damaged archive: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err = newTree(t, DefaultLimits()).UntarGzip(ctx, bytes.NewReader(whole))
	if !errors.Is(err, context.Canceled) || ReasonOf(err) != "" {
		t.Errorf("a cancelled context is no damaged archive: %v", err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), 0)
	defer cancel()
	if err = newTree(t, DefaultLimits()).UntarGzip(ctx, bytes.NewReader(whole)); ReasonOf(err) != Timeout {
		t.Errorf("an expired context: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func FuzzUntar(f *testing.F) {
	for _, seed := range [][]byte{
		archive(f, file("a", "1"), dir("b"), link("c", "a"), hard("d", "a")),
		archive(f, file("a/.wh.b", ""), file("a/.wh..wh..opq", ""), file("a/c", "1")),
		rename(archive(f, file("x", "1")), "../x"),
		zipped(f, archive(f, file("a", "1"))),
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, data []byte, asLayer bool) {
		tree, err := NewTree(t.TempDir(), smallLimits())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tree.Close() }()
		unpack := tree.Untar
		if asLayer {
			unpack = func(ctx context.Context, r io.Reader) error { return tree.UntarLayer(ctx, r, Uncompressed) }
		}
		if len(data) > 1 && data[0] == 0x1f && data[1] == 0x8b {
			unpack = tree.UntarGzip
		}
		err = unpack(context.Background(), bytes.NewReader(data))
		got := contents(t, tree.FS())
		if err != nil && (len(got) > 0 || ReasonOf(err) == "") {
			t.Errorf("left %v behind after %v", got, err)
		}
		size := 0
		for _, data := range got {
			size += len(data)
		}
		if size > 4096 || len(got) > 20 {
			t.Errorf("%d bytes in %d entries are over the limits", size, len(got))
		}
		if len(got) != len(tree.kinds)-1 {
			t.Errorf("the index knows %d paths, the folder has %d", len(tree.kinds)-1, len(got))
		}
	})
}
