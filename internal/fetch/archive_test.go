// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
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

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type countWriter struct {
	io.Writer
	n *int64
}

func (c countWriter) Write(p []byte) (int, error) { *c.n += int64(len(p)); return c.Writer.Write(p) }

func slicesRepeat(h tar.Header, n int) []tar.Header {
	all := make([]tar.Header, n)
	for i := range all {
		all[i] = h
	}
	return all
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

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
