// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/catalog/index"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// Contents are those of a catalog, compared with their digests.
type Contents struct {
	Record Record
	Index  *index.Index

	store  *Store
	stamps map[string]volume.Stamp
}

// Contents returns what a catalog serves. The reason of the error is fetch.NotFound if that is nothing or its files are gone,
// and fetch.DigestMismatch if they are damaged; a *volume.StorageError says that this could not be found out.
func (s *Store) Contents(catalog types.NamespacedName) (*Contents, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	record, found := s.records[catalog]
	if !found {
		return nil, fetch.Errorf(fetch.NotFound, "catalog %s is not stored", catalog)
	}
	contents, err := s.verified(record.Contents)
	if err != nil {
		return nil, fetch.Describe(err, "catalog %s", catalog)
	}
	of := *contents
	of.Record = record
	return &of, nil
}

// Open opens a file of the contents. The caller closes it.
func (c *Contents) Open(name string) (*os.File, error) {
	file, info, err := volume.OpenRegular(c.store.root, path.Join(contentsFolder, c.Record.Contents, name))
	if err == nil && volume.StampOf(info) != c.stamps[name] {
		err = errors.Join(volume.ErrReplaced, file.Close())
	}
	if err != nil {
		return nil, unusable(err)
	}
	return file, nil
}

// verified returns contents after they were compared with their digests, once for each state of the files. The caller holds mu.
func (s *Store) verified(contents string) (*Contents, error) {
	folder := path.Join(contentsFolder, contents)
	if known := s.checked[contents]; known != nil && known.unchanged(folder) {
		return known, nil
	}
	delete(s.checked, contents)
	sums, err := s.root.ReadFile(path.Join(folder, sumsFile))
	if err != nil {
		return nil, unusable(err)
	}
	if sum := sha256.Sum256(sums); hex.EncodeToString(sum[:]) != contents {
		return nil, fetch.Errorf(fetch.DigestMismatch, "its recorded digests are damaged")
	}
	found := &Contents{store: s, stamps: map[string]volume.Stamp{}}
	for line := range strings.Lines(string(sums)) {
		digest, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		actual, stamp, err := volume.DigestFile(s.root, path.Join(folder, name))
		if err != nil {
			return nil, unusable(err)
		}
		if actual != digest {
			return nil, fetch.Errorf(fetch.DigestMismatch, "its file %s is damaged", name)
		}
		found.stamps[name] = stamp
	}
	if found.Index, err = s.readIndex(path.Join(folder, index.IndexFile)); err != nil {
		return nil, err
	}
	s.checked[contents] = found
	return found, nil
}

func (s *Store) readIndex(name string) (*index.Index, error) {
	file, err := s.root.Open(name)
	if err != nil {
		return nil, unusable(err)
	}
	content, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, unusable(err)
	}
	x, err := index.Decode(content)
	if err != nil {
		return nil, fetch.Errorf(fetch.DigestMismatch, "%w", err) // written by another version of Satchel
	}
	return x, nil
}

// unchanged tells whether the files are as they were when they were compared.
func (c *Contents) unchanged(folder string) bool {
	for name, stamp := range c.stamps {
		info, err := c.store.root.Lstat(path.Join(folder, name))
		if err != nil || volume.StampOf(info) != stamp {
			return false
		}
	}
	return true
}

// unusable gives a reason to errors of reading.
func unusable(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fetch.Errorf(fetch.NotFound, "a stored file is gone")
	case errors.Is(err, volume.ErrNotRegular), errors.Is(err, volume.ErrNotFolder), errors.Is(err, volume.ErrReplaced):
		return fetch.Errorf(fetch.DigestMismatch, "a stored file is damaged: %w", volume.WithoutPath(err))
	}
	return volume.WrapError("reading", fmt.Errorf("a catalog: %w", volume.WithoutPath(err)))
}
