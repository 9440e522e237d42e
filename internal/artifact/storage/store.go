// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"golang.org/x/sync/singleflight"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
)

// Options say where a Store keeps its files and how it is reached.
type Options struct {
	// Dir is the storage folder; it is created when missing. One process uses it at a time.
	Dir string
	// BaseURL is where the handler is reached, as in http://host:port; a path of its own is allowed.
	BaseURL string
	// NamespaceBytes bounds what the archives of one namespace take together, over all its owners; 0 means no bound. It
	// is checked before an archive is published, and a draft is dropped as soon as it is larger than what is left.
	NamespaceBytes int64
	// FS is the file system; nil means the real one.
	FS volume.FileSystem
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Store keeps artifacts. It is safe for concurrent use.
type Store struct {
	dir     string
	baseURL string
	files   volume.FileSystem
	now     func() time.Time
	usage   *usage
	packer  artifact.Packer
	damaged atomic.Int64 // how many times an artifact was looked for that is gone or damaged

	owners  volume.Locks // by folder: Put, Collect and Remove of one owner exclude each other
	reads   singleflight.Group
	reading chan struct{} // bounds how many files are read for checking at once

	mu      sync.Mutex
	records byOwner[record]    // what the last check found
	used    byOwner[time.Time] // when Put returned it last, also when it existed already
}

const parallelChecks = 4

// Open prepares a Store. It creates the folder and removes what a killed process left unfinished. It reads no archive:
// each one is checked before its first use.
func Open(o Options) (*Store, error) {
	base, err := url.Parse(o.BaseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("opening the artifact store: base URL %.200q is not of the form http://host:port", o.BaseURL)
	}
	s := &Store{
		dir:     o.Dir,
		baseURL: strings.TrimRight(o.BaseURL, "/"),
		files:   o.FS,
		now:     o.Now,
		usage:   newUsage(o.NamespaceBytes),
		reading: make(chan struct{}, parallelChecks),
		records: byOwner[record]{},
		used:    byOwner[time.Time]{},
	}
	if s.files == nil {
		s.files = volume.OSFileSystem{}
	}
	if s.now == nil {
		s.now = time.Now
	}
	if err := s.tidy(); err != nil {
		return nil, fmt.Errorf("opening the artifact store: %w", err)
	}
	return s, nil
}

// tidy removes temporary files and empty folders, and counts what is stored. Folders that no owner can have are left alone.
func (s *Store) tidy() error {
	root, err := volume.OpenFolder(s.dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	owners, err := artifact.ListOwners(root)
	if err != nil {
		return err
	}
	for _, o := range owners {
		if err := volume.RemoveTemporary(root, o.Folder()); err != nil {
			return fmt.Errorf("cleaning up %s: %w", o, err)
		}
		if err := s.count(root, o); err != nil {
			return fmt.Errorf("counting what %s has stored: %w", o, err)
		}
		removeEmpty(root, o.Folder(), path.Dir(o.Folder()), o.Kind)
	}
	return nil
}

// removeEmpty removes those of the folders that are empty.
func removeEmpty(root *os.Root, folders ...string) {
	for _, folder := range folders {
		root.Remove(folder) //nolint:errcheck // refused while something is in it, which is the point
	}
}

// Owners lists the owners with a folder in the store, sorted, so that a caller can remove those that no longer exist.
func (s *Store) Owners() ([]artifact.Owner, error) {
	root, err := os.OpenRoot(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, volume.WrapError("opening the storage folder", err)
	}
	defer root.Close() //nolint:errcheck // only read from
	return artifact.ListOwners(root)
}

// Adopt returns the artifact with the URL under which this store serves it, which differs from the advertised one after
// the base URL was changed.
func (s *Store) Adopt(a meta.Artifact) meta.Artifact {
	a.URL = s.urlOf(a.Path)
	return a
}

func (s *Store) urlOf(file string) string { return s.baseURL + "/" + file }
