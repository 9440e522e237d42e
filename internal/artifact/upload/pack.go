// SPDX-License-Identifier: Apache-2.0

package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/opencontainers/go-digest"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// Snapshot is the content of a folder as it was at one time: what is changed meanwhile changes neither its digest nor what is
// uploaded. It lies in a temporary folder until it is closed.
type Snapshot struct {
	// Digest is sha256: and the hash of the canonical uncompressed tar.
	Digest string
	// Bytes is the size of that tar, Files how many files there are.
	Bytes int64
	Files int

	dir  string
	tree *fetch.Tree
}

// Take takes a snapshot of files, by the rules of the source controller: what it would refuse is refused here, in its words.
func Take(ctx context.Context, files fs.FS, limits fetch.Limits) (s *Snapshot, err error) {
	dir, err := os.MkdirTemp("", "satchel-")
	if err != nil {
		return nil, fmt.Errorf("creating a temporary folder: %w", err)
	}
	s = &Snapshot{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.tree, err = fetch.NewTree(dir, limits); err != nil {
		return s, err
	}
	if err := s.copy(ctx, files); err != nil {
		return s, err
	}
	err = fs.WalkDir(s.tree.FS(), ".", func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			s.Files++
		}
		return err
	})
	return s, err
}

// copy writes the files as a canonical tar, and unpacks that into the tree.
func (s *Snapshot) copy(ctx context.Context, files fs.FS) error {
	reader, writer := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := artifact.WriteCanonical(ctx, writer, files)
		writer.CloseWithError(err)
		packed <- err
	}()
	digester := digest.Canonical.Digester()
	counted := &counter{}
	err := s.tree.Untar(ctx, io.TeeReader(reader, io.MultiWriter(digester.Hash(), counted)))
	reader.CloseWithError(err)
	if failed := <-packed; failed != nil && (err == nil || !errors.Is(failed, err)) {
		return failed
	}
	s.Digest, s.Bytes = digester.Digest().String(), counted.bytes
	return err
}

// Write writes the canonical uncompressed tar.
func (s *Snapshot) Write(ctx context.Context, w io.Writer) error {
	return artifact.WriteCanonical(ctx, w, s.tree.FS())
}

// FS returns the files, read only. It must not be used after Close.
func (s *Snapshot) FS() fs.FS { return s.tree.FS() }

// Close removes the snapshot.
func (s *Snapshot) Close() error {
	var err error
	if s.tree != nil {
		err = s.tree.Close()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// counter counts what is written to it.
type counter struct{ bytes int64 }

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}
