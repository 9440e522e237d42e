// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"archive/tar"
	"context"
	"io"
	"path"
	"strings"
)

// Names with which an image layer removes what lower layers hold (OCI image specification, layer.md).
const (
	whiteoutPrefix = ".wh."
	whiteoutMeta   = ".wh..wh."
	whiteoutOpaque = ".wh..wh..opq"
)

// UntarLayer unpacks the uncompressed tar archive of one image layer over what lower layers left: whiteouts and
// opaque folders remove what is below, a file may cover a folder of a lower layer and the reverse. Everything else
// is as in Untar.
func (t *Tree) UntarLayer(ctx context.Context, r io.Reader) error {
	return t.unpack(ctx, r, layer{
		Tree:    t,
		fresh:   map[string]struct{}{t.prefix: {}},
		covered: map[string]struct{}{},
	}.place)
}

// layer is the state while one layer is unpacked. Whiteouts act on lower layers only, wherever they stand in the
// archive, so what this layer wrote is remembered.
type layer struct {
	*Tree
	fresh   map[string]struct{} // paths written by this layer, and the folders above them
	covered map[string]struct{} // paths whose lower content is gone already
}

func (l layer) place(header *tar.Header, where string, content io.Reader) error {
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
