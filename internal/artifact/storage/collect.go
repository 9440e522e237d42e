// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
)

// stored is one artifact of an owner, as Collect sees it.
type stored struct {
	file   string
	digest string // recorded digest of the file; that of the content when the record is damaged
	age    time.Time
}

// Collect removes unused artifacts: those that keep does not name, that are not among the newest retain, and
// that were stored longer than minAge ago. keep is asked with the digest of the file and with that of the content, the one
// in the revision. Artifacts of the same age are ordered by name. It returns the removed digests of files, sorted. What is
// being downloaded is downloaded to its end.
func (s *Store) Collect(ctx context.Context, o artifact.Owner, keep func(digest string) bool, retain int, minAge time.Duration) ([]string, error) {
	var removed []string
	err := s.withOwner(ctx, o, func(root *os.Root) error {
		artifacts, err := s.list(root, o)
		if err != nil {
			return err
		}
		horizon := s.now().Add(-minAge)
		for i, a := range artifacts {
			if i < retain || a.age.After(horizon) || keep(a.digest) || keep(a.contentDigest()) {
				continue
			}
			if err := errors.Join(ctx.Err(), s.unlink(root, a.file)); err != nil {
				return err
			}
			removed = append(removed, a.digest)
		}
		return removeCompanions(root, o.Folder())
	})
	slices.Sort(removed)
	if err != nil {
		return removed, fmt.Errorf("removing old artifacts of %s: %w", o, err)
	}
	return removed, nil
}

// Remove removes everything that the owner has in the store.
func (s *Store) Remove(ctx context.Context, o artifact.Owner) error {
	err := s.withOwner(ctx, o, func(root *os.Root) error {
		s.forgetAll(o)
		err := root.RemoveAll(o.Folder())
		if err == nil {
			s.usage.forget(o)
		}
		return volume.WrapError("removing a folder", err)
	})
	if err != nil {
		return fmt.Errorf("removing the artifacts of %s: %w", o, err)
	}
	return nil
}

// withOwner runs work while nothing else changes the owner's folder; an owner without one is nothing to do.
func (s *Store) withOwner(ctx context.Context, o artifact.Owner, work func(root *os.Root) error) error {
	if err := o.Validate(); err != nil {
		return err
	}
	unlock, err := s.owners.Lock(ctx, o.Folder())
	if err != nil {
		return err
	}
	defer unlock()
	root, err := os.OpenRoot(s.dir)
	if err == nil {
		defer root.Close() //nolint:errcheck // removing needs no sync: what comes back is removed again
		err = volume.RequireFolders(root, o.Folder())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return volume.WrapError("opening a folder", err)
	}
	return work(root)
}

// list returns the artifacts of an owner, newest first, and by name where the age is the same.
func (s *Store) list(root *os.Root, o artifact.Owner) ([]stored, error) {
	entries, err := volume.ListFolder(root, o.Folder())
	if err != nil {
		return nil, volume.WrapError("listing a folder", err)
	}
	var artifacts []stored
	for _, entry := range entries {
		identity, ok := artifact.ParseArchiveName(entry.Name())
		if !ok {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return nil, volume.WrapError("listing a folder", err)
		}
		artifacts = append(artifacts, s.storedFile(root, o.File(identity), info.ModTime()))
	}
	slices.SortFunc(artifacts, func(a, b stored) int {
		if order := b.age.Compare(a.age); order != 0 {
			return order
		}
		return strings.Compare(a.file, b.file)
	})
	return artifacts, nil
}

func (s *Store) storedFile(root *os.Root, file string, modified time.Time) stored {
	a := stored{file: file, age: modified}
	digest, err := readChecksum(root, file)
	a.digest = artifact.DigestPrefix + digest
	if err != nil {
		a.digest = a.contentDigest()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if used, _ := s.used.get(file); used.After(a.age) {
		a.age = used
	}
	return a
}

// contentDigest is the identity in the file's name, as a digest.
func (a stored) contentDigest() string {
	return artifact.DigestPrefix + strings.TrimSuffix(path.Base(a.file), artifact.ArchiveSuffix)
}

// unlink removes one artifact, the archive first, so that no archive is ever without its digest.
func (s *Store) unlink(root *os.Root, file string) error {
	s.mu.Lock()
	s.records.remove(file)
	s.used.remove(file)
	s.mu.Unlock()
	err := root.RemoveAll(file)
	if err == nil {
		s.usage.set(file, 0)
	}
	return volume.WrapError("removing a file", errors.Join(err, root.RemoveAll(file+artifact.ChecksumSuffix), root.RemoveAll(file+signatureSuffix)))
}

// forgetAll drops what is known about the files of an owner.
func (s *Store) forgetAll(o artifact.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, o.Folder())
	delete(s.used, o.Folder())
}

// removeCompanions removes recorded digests and signatures without an archive: it was never stored, or is gone.
func removeCompanions(root *os.Root, folder string) error {
	entries, err := volume.ListFolder(root, folder)
	if err != nil {
		return volume.WrapError("listing a folder", err)
	}
	var failed []error
	for _, entry := range entries {
		archive, ok := strings.CutSuffix(entry.Name(), artifact.ChecksumSuffix)
		if !ok {
			archive, ok = strings.CutSuffix(entry.Name(), signatureSuffix)
		}
		if !ok {
			continue
		}
		if _, err := root.Lstat(path.Join(folder, archive)); errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, root.RemoveAll(path.Join(folder, entry.Name())))
		}
	}
	return volume.WrapError("removing what belongs to no artifact", errors.Join(failed...))
}
