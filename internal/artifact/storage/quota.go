// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"sync"

	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/volume"
)

// QuotaError says that an artifact does not fit into what its namespace may store. Nothing of it is left behind then, and
// what is stored stays stored and served. Its text stays the same across retries.
type QuotaError struct {
	// Namespace is that of the owner.
	Namespace string
	// Limit is Options.NamespaceBytes.
	Limit int64
}

// Error says what to do.
func (e *QuotaError) Error() string {
	return fmt.Sprintf("the artifacts and catalogs of namespace %s may take %d bytes in storage, and this one does not fit in beside the others: "+
		"delete a BundleSource or BundleCatalog of the namespace, leave files out with spec.ignore, or ask for a larger --storage-quota-per-namespace",
		e.Namespace, e.Limit)
}

// usage counts the bytes of the archives that are stored. The same content of one owner is stored, and counted, once.
type usage struct {
	most int64 // a namespace; 0 for any number

	mu      sync.Mutex
	files   byOwner[int64]
	spaces  map[string]int64 // bytes of the files by namespace; one without files is missing
	pending map[string]bool  // files that are counted and not published yet
	refused int64
	// others are bytes of other stores by namespace and name: see Occupy
	others map[string]map[string]int64
}

func newUsage(most int64) *usage {
	return &usage{most: most, files: byOwner[int64]{}, spaces: map[string]int64{}, pending: map[string]bool{}, others: map[string]map[string]int64{}}
}

// set notes that a file is stored with that many bytes; 0 for a file that is not.
func (u *usage) set(file string, size int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.write(file, size)
}

func (u *usage) write(file string, size int64) {
	namespace := artifact.NamespaceOf(file)
	before, _ := u.files.get(file)
	if u.spaces[namespace] += size - before; u.spaces[namespace] == 0 {
		delete(u.spaces, namespace)
	}
	if size == 0 {
		u.files.remove(file)
		return
	}
	u.files.set(file, size)
}

// forget notes that everything of an owner is gone.
func (u *usage) forget(o artifact.Owner) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for file := range u.files[o.Folder()] {
		u.write(file, 0)
	}
}

func (u *usage) bytesOf(namespace string) (sum int64) {
	sum = u.spaces[namespace]
	for _, size := range u.others[namespace] {
		sum += size
	}
	return sum
}

// Occupy counts bytes that another store keeps for a namespace on the same volume. The same name counts once.
func (s *Store) Occupy(namespace, name string, bytes int64) {
	s.usage.mu.Lock()
	defer s.usage.mu.Unlock()
	s.usage.occupy(namespace, name, bytes)
}

// Reserve is Occupy if the quota of the namespace has room, and a *QuotaError otherwise.
func (s *Store) Reserve(namespace, name string, bytes int64) error {
	u := s.usage
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.most > 0 && u.bytesOf(namespace)-u.others[namespace][name]+bytes > u.most {
		u.refused++
		return &QuotaError{Namespace: namespace, Limit: u.most}
	}
	u.occupy(namespace, name, bytes)
	return nil
}

// Release ends what Occupy or Reserve began.
func (s *Store) Release(namespace, name string) {
	s.usage.mu.Lock()
	defer s.usage.mu.Unlock()
	delete(s.usage.others[namespace], name)
	if len(s.usage.others[namespace]) == 0 {
		delete(s.usage.others, namespace)
	}
}

func (u *usage) occupy(namespace, name string, bytes int64) {
	if u.others[namespace] == nil {
		u.others[namespace] = map[string]int64{}
	}
	u.others[namespace][name] = bytes
}

// draft is how many bytes the draft of an owner's artifact may take: what the namespace has left and, because the artifact
// may prove to be one that the owner has already, what the owner has.
func (u *usage) draft(o artifact.Owner) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	left := max(0, u.most-u.bytesOf(o.Namespace))
	for _, size := range u.files[o.Folder()] {
		left += size
	}
	return left
}

// charge counts a file before it is published, if its namespace may store it. The caller says how the publishing ended.
func (u *usage) charge(file string, size int64) (end func(error), ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, _ := u.files.get(file)
	if u.most > 0 && u.bytesOf(artifact.NamespaceOf(file))-before+size > u.most {
		return nil, false
	}
	u.write(file, size)
	u.pending[file] = true
	return func(err error) {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.pending, file)
		if err != nil {
			u.write(file, before)
		}
	}, true
}

// settled lists the files of a namespace that are published, with their sizes.
func (u *usage) settled(namespace string) map[string]int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	files := map[string]int64{}
	for folder, of := range u.files {
		if artifact.NamespaceOf(folder) == namespace {
			maps.Copy(files, of)
		}
	}
	maps.DeleteFunc(files, func(file string, _ int64) bool { return u.pending[file] })
	return files
}

// refuse counts a refusal.
func (u *usage) refuse(o artifact.Owner) *QuotaError {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refused++
	return &QuotaError{Namespace: o.Namespace, Limit: u.most}
}

// quotaWriter refuses what is more than the rest.
type quotaWriter struct {
	to   io.Writer
	rest int64
}

var errQuota = errors.New("more than the namespace may store")

// Write implements io.Writer.
func (w *quotaWriter) Write(p []byte) (int, error) {
	if w.rest -= int64(len(p)); w.rest < 0 {
		return 0, errQuota
	}
	return w.to.Write(p)
}

// withinQuota is where the draft of an owner's artifact is written to.
func (s *Store) withinQuota(o artifact.Owner, draft io.Writer) io.Writer {
	if s.usage.most <= 0 {
		return draft
	}
	return &quotaWriter{to: draft, rest: s.usage.draft(o)}
}

// count finds out what an owner has stored.
func (s *Store) count(root *os.Root, o artifact.Owner) error {
	entries, err := volume.ListFolder(root, o.Folder())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return volume.WrapError("listing a folder", err)
	}
	for _, entry := range entries {
		identity, ok := artifact.ParseArchiveName(entry.Name())
		if !ok {
			continue
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			s.usage.set(o.File(identity), info.Size())
		}
	}
	return nil
}

// recount looks for files of a namespace that were lost on disk, and tells whether there were some.
func (s *Store) recount(namespace string) (changed bool) {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return false
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	for file, counted := range s.usage.settled(namespace) {
		if size := regularSize(root, file); size != counted {
			s.usage.set(file, size)
			changed = true
		}
	}
	return changed
}

// regularSize is the size of a file; 0 where there is none.
func regularSize(root *os.Root, file string) int64 {
	info, err := root.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

// Stats are figures of a Store.
type Stats struct {
	// Artifacts is how many are stored, Bytes how many bytes they take, Namespaces how many namespaces have some.
	Artifacts, Bytes, Namespaces int64
	// Refused is how many artifacts did not fit into what their namespace may store.
	Refused int64
	// Damaged is how many times an artifact was looked for that is gone, or was found to be damaged.
	Damaged int64
}

// Stats returns the figures of now.
func (s *Store) Stats() Stats {
	s.usage.mu.Lock()
	defer s.usage.mu.Unlock()
	stats := Stats{Namespaces: int64(len(s.usage.spaces)), Refused: s.usage.refused, Damaged: s.damaged.Load()}
	for _, files := range s.usage.files {
		stats.Artifacts += int64(len(files))
	}
	for _, size := range s.usage.spaces {
		stats.Bytes += size
	}
	return stats
}
