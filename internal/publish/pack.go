// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/links"
)

// Packed is a folder as one layer.
type Packed struct {
	dir  string
	tree *fetch.Tree

	// Digest and Size are of the layer as it is sent, compressed.
	Digest v1.Hash
	Size   int64
	// Content is the digest of the uncompressed layer: the one in the revision of an artifact.
	Content v1.Hash
	// Files and Bytes count what is in it.
	Files int
	Bytes int64
}

// Pack takes a copy of the regular files of a tree, within the limits of the source controller, and packs that. Close it.
func Pack(ctx context.Context, files fs.FS, limits fetch.Limits) (p *Packed, err error) {
	dir, err := os.MkdirTemp("", "satchel-")
	if err != nil {
		return nil, fmt.Errorf("creating a temporary folder: %w", err)
	}
	p = &Packed{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
			p = nil
		}
	}()
	copied := filepath.Join(dir, "tree")
	if err := os.Mkdir(copied, 0o700); err != nil {
		return p, fmt.Errorf("creating a temporary folder: %w", err)
	}
	if p.tree, err = fetch.NewTree(copied, limits); err != nil {
		return p, err
	}
	if err := p.take(ctx, files); err != nil {
		return p, err
	}
	if p.Files == 0 {
		return p, fetch.Errorf(fetch.InvalidContent, "there are no files to publish")
	}
	if err := p.pack(ctx); err != nil {
		return p, err
	}
	if p.Size > limits.DownloadBytes {
		return p, fetch.Errorf(fetch.LimitExceeded, "the layers have more than %d bytes", limits.DownloadBytes)
	}
	return p, nil
}

// FS is the files as they were taken.
func (p *Packed) FS() fs.FS { return p.tree.FS() }

// Close removes the copy.
func (p *Packed) Close() error {
	var err error
	if p.tree != nil {
		err = p.tree.Close()
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// take copies the files, and the names of what they lack.
func (p *Packed) take(ctx context.Context, files fs.FS) error {
	if err := p.takeFiles(ctx, files); err != nil {
		return err
	}
	var err error
	for _, name := range links.Of(files) {
		err = errors.Join(err, p.tree.SkipLink(name))
	}
	return err
}

func (p *Packed) takeFiles(ctx context.Context, files fs.FS) error {
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("reading %s: %w", fetch.Quote(name), err)
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return fetch.Errorf(fetch.InvalidContent, "file %s: it is neither a regular file nor a folder: remove it, or leave it out with --ignore", fetch.Quote(name))
		}
		return p.copy(files, name)
	})
}

func (p *Packed) copy(files fs.FS, name string) error {
	file, err := files.Open(name)
	if err != nil {
		return fmt.Errorf("reading %s: %w", fetch.Quote(name), err)
	}
	counted := &counter{reader: file}
	err = p.tree.WriteFile(name, counted)
	p.Files++
	p.Bytes += counted.bytes
	return errors.Join(err, file.Close())
}

// counter counts what is read.
type counter struct {
	reader io.Reader
	bytes  int64
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	c.bytes += int64(n)
	return n, err
}

// layerFile is where the layer lies.
func (p *Packed) layerFile() string { return filepath.Join(p.dir, "layer.tar.gz") }

// pack writes the layer. The header of gzip carries no name and no time.
func (p *Packed) pack(ctx context.Context) (err error) {
	file, err := os.Create(p.layerFile())
	if err != nil {
		return fmt.Errorf("writing the layer: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	outer := &summed{to: file, hash: sha256.New()}
	compressor := gzip.NewWriter(outer)
	inner := &summed{to: compressor, hash: sha256.New()}
	if err := artifact.WriteCanonical(ctx, inner, p.tree.FS()); err != nil {
		return fmt.Errorf("packing the files: %w", err)
	}
	if err := compressor.Close(); err != nil {
		return fmt.Errorf("packing the files: %w", err)
	}
	p.Digest, p.Size, p.Content = outer.digest(), outer.size, inner.digest()
	return nil
}

// summed hashes and counts what passes through it.
type summed struct {
	to   io.Writer
	hash hash.Hash
	size int64
}

// Write implements io.Writer.
func (s *summed) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.hash.Write(p[:n])
	s.size += int64(n)
	return n, err
}

func (s *summed) digest() v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(s.hash.Sum(nil))}
}
