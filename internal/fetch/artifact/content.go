// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// Content is an artifact, unpacked into a folder of its own.
type Content struct {
	dir    string
	tree   *fetch.Tree
	closed func() error
}

// FS returns the files, read only. It must not be used after Close.
func (c *Content) FS() fs.FS { return c.tree.FS() }

// Close removes the files. Closing again does nothing.
func (c *Content) Close() error { return c.closed() }

func newContent(cacheDir string, limits fetch.Limits) (*Content, error) {
	dir, err := os.MkdirTemp(cacheDir, temporaryPrefix)
	if err != nil {
		return nil, storageError("creating a temporary folder", err)
	}
	tree, err := fetch.NewTree(dir, limits)
	if err != nil {
		return nil, storageError("opening a temporary folder", errors.Join(err, os.RemoveAll(dir)))
	}
	return &Content{dir: dir, tree: tree, closed: sync.OnceValue(func() error {
		return storageError("removing a temporary folder", errors.Join(tree.Close(), os.RemoveAll(dir)))
	})}, nil
}

// unpack unpacks an archive whose digest is right, and makes sure that its content has the identity of the revision.
func (l *Loader) unpack(ctx context.Context, archive io.Reader, identity string) (*Content, error) {
	content, err := newContent(l.cache.dir, l.limits)
	if err != nil {
		return nil, err
	}
	if err := unpackInto(ctx, content.tree, archive, identity); err != nil {
		return nil, errors.Join(err, content.Close())
	}
	return content, nil
}

func unpackInto(ctx context.Context, tree *fetch.Tree, archive io.Reader, identity string) error {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return fetch.Errorf(fetch.InvalidContent, "it is not a gzip archive: %w", err)
	}
	w := &digestWriter{to: io.Discard, hash: sha256.New()}
	if err := tree.Untar(ctx, io.TeeReader(unzipped, w)); err != nil {
		return unpackError(ctx, err)
	}
	if identity != "" && w.sum() != identity {
		return fetch.Errorf(fetch.DigestMismatch, "its content has digest %s%s where the revision says %s%s",
			digestPrefix, w.sum(), digestPrefix, identity)
	}
	return nil
}

// unpackError tells the volume's failures, which have no reason, from the content's.
func unpackError(ctx context.Context, err error) error {
	if fetch.ReasonOf(err) != "" || ctx.Err() != nil {
		return err
	}
	return storageError("unpacking", err)
}
