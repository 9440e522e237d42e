// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/satchel-dev/satchel/internal/concurrentio"
)

// Names with which an image layer removes what lower layers hold (OCI image specification, layer.md).
const (
	whiteoutPrefix = ".wh."
	whiteoutMeta   = ".wh..wh."
	whiteoutOpaque = ".wh..wh..opq"
)

// Compression is how the archive of an image layer is packed.
type Compression string

const (
	// Uncompressed is a plain tar archive.
	Uncompressed Compression = "tar"
	// Gzip may have several members, as lazily loadable images have.
	Gzip Compression = "tar+gzip"
	// Zstd may have several frames.
	Zstd Compression = "tar+zstd"
)

// UntarLayer unpacks the tar archive of one image layer over what lower layers left, and reads r to its end:
// whiteouts and opaque folders remove what is below, a file may cover a folder of a lower layer and the reverse.
// Everything else is as in Untar. A large layer is decompressed while its files are written.
func (t *Tree) UntarLayer(ctx context.Context, r io.Reader, packed Compression) error {
	raw := &witness{reader: r}
	unpacked, err := decompress(raw, packed)
	if err != nil {
		return raw.explain(err)
	}
	ahead := concurrentio.NewReader(unpacked)
	err = t.unpack(ctx, ahead, layer{
		Tree:    t,
		fresh:   map[string]struct{}{t.prefix: {}},
		covered: map[string]struct{}{},
	}.place)
	return raw.explain(errors.Join(err, ahead.Close(), unpacked.Close()))
}

// maxWindow bounds the memory of a zstd decoder: it holds the window, and as many sources are unpacked at once as the
// controller has workers. 8 MiB is what decoders should support (RFC 8878, section 3.1.1.1.2) and what zstd uses up to
// level 19; --ultra, --long and the higher levels of other encoders need more.
const maxWindow = 8 << 20

func decompress(r io.Reader, packed Compression) (io.ReadCloser, error) {
	switch packed {
	case Gzip:
		return gzip.NewReader(bufio.NewReaderSize(r, 64<<10))
	case Zstd:
		decoder, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return zstdReader{decoder.IOReadCloser()}, nil
	default:
		return io.NopCloser(r), nil
	}
}

// zstdReader gives the decoder's findings a reason; failures of its source keep theirs.
type zstdReader struct{ io.ReadCloser }

func (z zstdReader) Read(p []byte) (int, error) {
	n, err := z.ReadCloser.Read(p)
	switch {
	case err == nil, err == io.EOF: //nolint:errorlint // a reader returns io.EOF itself
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		err = Errorf(LimitExceeded, "the zstd archive needs a window of more than %d MiB: compress it at a lower level, without --ultra and --long", maxWindow>>20)
	default:
		err = Errorf(InvalidContent, "the zstd archive is damaged: %w", err)
	}
	return n, err
}

// layer is the state while one layer is unpacked. Whiteouts act on lower layers only, wherever they stand in the
// archive, so what this layer wrote is remembered.
type layer struct {
	*Tree
	fresh   map[string]struct{} // paths written by this layer, and the folders above them
	covered map[string]struct{} // paths where the content of lower layers is removed already
}

func (l layer) place(header *tar.Header, where string, content io.Reader) error {
	if !l.concerns(where) {
		return nil
	}
	if base := path.Base(where); strings.HasPrefix(base, whiteoutPrefix) {
		return l.whiteout(where, base)
	}
	if err := l.makeWay(header, where); err != nil {
		return err
	}
	if err := l.Tree.place(header, where, content); err != nil {
		return err
	}
	l.touch(where)
	return nil
}

// concerns tells whether an entry is in what is unpacked, or decides about a folder above that.
func (l layer) concerns(where string) bool {
	if l.only == "" {
		return true
	}
	if base := path.Base(where); base == whiteoutOpaque {
		where = path.Dir(where)
	} else if name, whiteout := strings.CutPrefix(base, whiteoutPrefix); whiteout {
		where = path.Join(path.Dir(where), name)
	}
	return within(where, l.only) || within(l.only, where)
}

// within tells whether a path is a folder, or is in it.
func within(where, folder string) bool {
	return where == folder || folder == "." || strings.HasPrefix(where, folder+"/")
}

// makeWay removes what a lower layer has where this one wants something of another kind.
func (l layer) makeWay(header *tar.Header, where string) error {
	for parent := path.Dir(where); parent != "."; parent = path.Dir(parent) {
		if l.kinds[parent] != regular {
			continue
		}
		if err := l.cover(parent); err != nil {
			return err
		}
	}
	if (l.kinds[where] == directory) == (header.Typeflag == tar.TypeDir) {
		return nil
	}
	return l.cover(where)
}

// whiteout removes what lower layers hold below a name or, when opaque, in a folder.
func (l layer) whiteout(where, base string) error {
	if err := l.left.entry(l.limits); err != nil {
		return err
	}
	folder := path.Dir(where)
	if base == whiteoutOpaque {
		return l.cover(folder)
	}
	if strings.HasPrefix(base, whiteoutMeta) {
		return nil
	}
	name := strings.TrimPrefix(base, whiteoutPrefix)
	if name == "" || name == "." || name == ".." {
		return Errorf(InvalidContent, "its whiteout names nothing")
	}
	return l.cover(path.Join(folder, name))
}

// cover removes what lower layers hold at where and below, and spares what this layer wrote.
func (l layer) cover(where string) error {
	if _, done := l.covered[where]; done {
		return nil
	}
	l.covered[where] = struct{}{}
	if _, mine := l.fresh[where]; !mine {
		return l.remove(where)
	}
	if l.kinds[where] != directory {
		return nil
	}
	below, err := l.children(where)
	if err != nil {
		return err
	}
	for _, child := range below {
		if err := l.cover(child); err != nil {
			return err
		}
	}
	return nil
}

// touch records that this layer wrote where.
func (l layer) touch(where string) {
	for ; where != l.prefix; where = path.Dir(where) {
		if _, known := l.fresh[where]; known {
			return
		}
		l.fresh[where] = struct{}{}
	}
}
