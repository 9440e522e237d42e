// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/format"
)

// Folders of a store.
const (
	contentsFolder = "contents"
	recordsFolder  = "records"
)

// Quota bounds what the catalogs of a namespace take in storage, together with its artifacts. Contents that several catalogs of
// a namespace share count once.
type Quota interface {
	// Occupy counts contents that are stored already.
	Occupy(namespace, contents string, bytes int64)
	// Reserve counts contents before they are stored; the error says that there is no room.
	Reserve(namespace, contents string, bytes int64) error
	// Release ends counting contents.
	Release(namespace, contents string)
}

// Options say where a Store keeps its files.
type Options struct {
	// Dir is the folder; it is created when missing. One process uses it at a time.
	Dir string
	// Files is the file system; nil means the real one.
	Files volume.FileSystem
	// Quota bounds what namespaces store.
	Quota Quota
	// Bytes bounds one file of the contents of a catalog.
	Bytes int64
}

// Record says what a catalog serves.
type Record struct {
	// Contents names the folder: 64 hexadecimal digits.
	Contents string `json:"contents"`
	// Digest is that of all blobs, "sha256:<hex>".
	Digest string `json:"digest"`
	// Bytes are those of all files.
	Bytes int64 `json:"bytes"`
	// StoredTime is when the catalog got these contents.
	StoredTime time.Time `json:"storedTime"`
	// Signature is what Store.Publish was given.
	Signature []byte `json:"signature,omitempty"`
}

// Store keeps contents. It is safe for concurrent use.
type Store struct {
	options Options
	root    *os.Root

	mu      sync.Mutex
	records map[types.NamespacedName]Record
	checked map[string]*Contents // by folder: those that were compared with their digests
}

// Open prepares a store, and removes what a killed process left unfinished.
func Open(o Options) (*Store, error) {
	if o.Files == nil {
		o.Files = volume.OSFileSystem{}
	}
	root, err := volume.OpenFolder(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the store of catalogs: %w", err)
	}
	s := &Store{options: o, root: root, records: map[types.NamespacedName]Record{}, checked: map[string]*Contents{}}
	err = errors.Join(volume.MakeFolders(o.Files, root, contentsFolder), volume.MakeFolders(o.Files, root, recordsFolder))
	if err == nil {
		err = s.load()
	}
	if err == nil {
		err = s.tidy()
	}
	if err != nil {
		return nil, fmt.Errorf("opening the store of catalogs: %w", err)
	}
	return s, nil
}

// load reads all records. One that cannot be read is that of a catalog that is fetched again.
func (s *Store) load() error {
	namespaces, err := volume.ListFolder(s.root, recordsFolder)
	if err != nil {
		return volume.WrapError("listing a folder", err)
	}
	for _, namespace := range namespaces {
		folder := path.Join(recordsFolder, namespace.Name())
		if err := volume.RemoveTemporary(s.root, folder); err != nil {
			return err
		}
		names, err := volume.ListFolder(s.root, folder)
		if err != nil {
			return volume.WrapError("listing a folder", err)
		}
		for _, name := range names {
			key := types.NamespacedName{Namespace: namespace.Name(), Name: name.Name()}
			content, err := s.root.ReadFile(path.Join(folder, name.Name()))
			if err == nil {
				content, err = format.Catalog.Cut(content)
			}
			var record Record
			if err != nil || json.Unmarshal(content, &record) != nil || !artifact.IsHexDigest(record.Contents) {
				continue
			}
			s.records[key] = record
			s.options.Quota.Occupy(key.Namespace, record.Contents, record.Bytes)
		}
	}
	return nil
}

// tidy removes contents that no record names. The caller holds mu, or is alone.
func (s *Store) tidy() error {
	entries, err := volume.ListFolder(s.root, contentsFolder)
	if err != nil {
		return volume.WrapError("listing a folder", err)
	}
	used := map[string]bool{}
	for _, record := range s.records {
		used[record.Contents] = true
	}
	for _, entry := range entries {
		if !used[entry.Name()] {
			delete(s.checked, entry.Name())
			err = errors.Join(err, s.root.RemoveAll(path.Join(contentsFolder, entry.Name())))
		}
	}
	return volume.WrapError("removing unused catalogs", err)
}

// Record returns what a catalog serves.
func (s *Store) Record(catalog types.NamespacedName) (Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	record, found := s.records[catalog]
	return record, found
}

// Catalogs are those that serve something.
func (s *Store) Catalogs() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]types.NamespacedName, 0, len(s.records))
	for catalog := range s.records {
		all = append(all, catalog)
	}
	return all
}

// Remove ends serving a catalog, and removes its contents unless another one has the same.
func (s *Store) Remove(catalog types.NamespacedName) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	record, found := s.records[catalog]
	if !found {
		return nil
	}
	if err := s.root.Remove(recordFile(catalog)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing catalog %s: %w", catalog, volume.WrapError("removing a file", err))
	}
	delete(s.records, catalog)
	return s.release(catalog.Namespace, record.Contents)
}

// release removes contents that a catalog no longer serves, where no other one does.
func (s *Store) release(namespace, contents string) error {
	here, anywhere := false, false
	for catalog, record := range s.records {
		if record.Contents == contents {
			anywhere = true
			here = here || catalog.Namespace == namespace
		}
	}
	if !here {
		s.options.Quota.Release(namespace, contents)
	}
	if anywhere {
		return nil
	}
	delete(s.checked, contents)
	return volume.WrapError("removing an unused catalog", s.root.RemoveAll(path.Join(contentsFolder, contents)))
}

func recordFile(catalog types.NamespacedName) string {
	return path.Join(recordsFolder, catalog.Namespace, catalog.Name)
}
