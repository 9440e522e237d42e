// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/format"
)

// signatureSuffix is that of the file beside an archive with the signatures by which its content was accepted. It does not
// count against the quota: it is bounded, and there is one an archive.
const signatureSuffix = ".signatures"

// MaxSignatureBytes bounds what is kept of the signatures of one artifact.
const MaxSignatureBytes = 1 << 20

// KeepSignature keeps the signatures by which the content of a stored artifact was accepted, in a form of the caller's own,
// in place of what was kept before; nothing removes that. They go with the artifact.
func (s *Store) KeepSignature(ctx context.Context, o artifact.Owner, a meta.Artifact, content []byte) error {
	if len(content) > MaxSignatureBytes {
		content = nil
	}
	err := s.withOwner(ctx, o, func(root *os.Root) error {
		name, err := signatureFile(o, a)
		if err != nil || len(content) == 0 {
			return errors.Join(err, volume.WrapError("removing a file", root.RemoveAll(name)))
		}
		if err := removeIrregular(root, name); err != nil {
			return err
		}
		return volume.WriteDurably(s.files, root, name, format.Signatures.Prepend(content))
	})
	if err != nil {
		return fmt.Errorf("keeping the signatures of %s: %w", o, err)
	}
	return nil
}

// Signature returns what KeepSignature kept; nil for nothing.
func (s *Store) Signature(ctx context.Context, o artifact.Owner, a meta.Artifact) (content []byte, err error) {
	err = s.withOwner(ctx, o, func(root *os.Root) error {
		name, err := signatureFile(o, a)
		if err != nil {
			return err
		}
		opened, _, err := volume.OpenRegular(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return unusable(err)
		}
		defer opened.Close() //nolint:errcheck // only read from
		whole, err := io.ReadAll(io.LimitReader(opened, MaxSignatureBytes+64))
		if err != nil {
			return volume.WrapError("reading the signatures of an artifact", err)
		}
		content, err = volume.Cut(format.Signatures, whole)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the signatures of %s: %w", o, err)
	}
	return content, nil
}

// signatureFile is the file with the signatures of an artifact of the owner.
func signatureFile(o artifact.Owner, a meta.Artifact) (string, error) {
	if !artifact.IsArchive(a.Path) || path.Dir(a.Path) != o.Folder() {
		return "", fetch.Errorf(fetch.Refused, "%s is no artifact of %s", fetch.Quote(a.Path), o)
	}
	return a.Path + signatureSuffix, nil
}
