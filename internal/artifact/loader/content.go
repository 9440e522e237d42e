// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/packed"
)

// Content is an artifact, unpacked into one file that has no name any more: nothing of it stays, however the process ends.
type Content struct {
	file  *os.File
	index []packed.Entry
	files fs.FS
	// leftOut are links that the files lack.
	leftOut []string
}

// FS returns the files, read only. It must not be used after Close.
func (c *Content) FS() fs.FS { return c.files }

// LeftOut names links that the files lack: see fetch.Tree.LeftOut.
func (c *Content) LeftOut() []string { return c.leftOut }

// File holds the files one after the other, open for reading only, as Index lists them.
func (c *Content) File() *os.File { return c.file }

// Index lists the files.
func (c *Content) Index() []packed.Entry { return c.index }

// Close removes the files. Closing again does nothing.
func (c *Content) Close() error {
	if err := c.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return volume.WrapError("closing an unpacked artifact", err)
	}
	return nil
}

// unpack unpacks an archive with a verified digest, and checks that its content has the identity of the revision.
func (l *Loader) unpack(ctx context.Context, archive io.Reader, identity string) (*Content, error) {
	write, read, err := l.cache.Temporary()
	if err != nil {
		return nil, volume.WrapError("unpacking", err)
	}
	tree := fetch.NewPackedTree(write, read, l.limits)
	if err := unpackInto(ctx, tree, archive, identity); err != nil {
		return nil, errors.Join(err, write.Close(), tree.Close())
	}
	content := &Content{files: tree.FS(), leftOut: tree.LeftOut()}
	if content.file, content.index, err = tree.Packed(); err != nil {
		return nil, volume.WrapError("unpacking", errors.Join(err, tree.Close()))
	}
	return content, nil
}

func unpackInto(ctx context.Context, tree *fetch.Tree, archive io.Reader, identity string) error {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return fetch.Errorf(fetch.InvalidContent, "it is not a gzip archive: %w", err)
	}
	sum := sha256.New()
	if err := tree.Untar(ctx, io.TeeReader(unzipped, sum)); err != nil {
		return unpackError(ctx, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); identity != "" && got != identity {
		return fetch.Errorf(fetch.DigestMismatch, "its content has digest %s%s where the revision says %s%s",
			artifact.DigestPrefix, got, artifact.DigestPrefix, identity)
	}
	return nil
}

// unpackError tells the volume's failures, which have no reason, from the content's.
func unpackError(ctx context.Context, err error) error {
	if fetch.ReasonOf(err) != "" || ctx.Err() != nil {
		return err
	}
	return volume.WrapError("unpacking", err)
}
