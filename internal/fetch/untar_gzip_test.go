// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

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
