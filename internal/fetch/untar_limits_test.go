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
)

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
		"Unknown":        {"the type is unknown", withType(t, 'Z'), InvalidContent},
		"Contiguous":     {"the type is not in use", withType(t, tar.TypeCont), InvalidContent},
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
