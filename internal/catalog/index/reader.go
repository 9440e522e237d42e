// SPDX-License-Identifier: Apache-2.0

package index

import (
	"bytes"
	"container/list"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/fbc"
)

// cacheBytes bounds the lean blobs of the packages that a Reader keeps in memory.
const cacheBytes = 16 << 20

// Reader reads packages. It is safe for concurrent use.
type Reader struct {
	Index *Index

	lean io.ReaderAt

	mu    sync.Mutex
	bytes int64 // of the lean blobs of what is cached
	used  *list.List
	known map[string]*list.Element
}

// cached is a package in the cache.
type cached struct {
	name   string
	bytes  int64
	parsed *catalog.Package
}

// NewReader returns a reader of the file with lean blobs.
func NewReader(x *Index, lean io.ReaderAt) *Reader {
	return &Reader{Index: x, lean: lean, used: list.New(), known: map[string]*list.Element{}}
}

// Package returns the lean content of a package, which the caller does not change. It is nil if the catalog has no such
// package. The error is the problem of the package, or that of reading the file.
func (r *Reader) Package(name string) (*catalog.Package, error) {
	entry, found := r.Index.Find(name)
	switch {
	case !found:
		return nil, nil
	case entry.Problem != "":
		return nil, errors.New(entry.Problem)
	}
	if p := r.cached(name); p != nil {
		return p, nil
	}
	p, err := r.Index.readPackage(r.lean, entry)
	if err == nil {
		r.keep(entry, p)
	}
	return p, err
}

func (r *Reader) cached(name string) *catalog.Package {
	r.mu.Lock()
	defer r.mu.Unlock()
	element := r.known[name]
	if element == nil {
		return nil
	}
	r.used.MoveToFront(element)
	return element.Value.(*cached).parsed //nolint:errcheck,forcetypeassert // the list holds nothing else
}

func (r *Reader) keep(entry Package, p *catalog.Package) {
	size := leanBytes(entry)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[entry.Name] != nil || size > cacheBytes {
		return
	}
	r.known[entry.Name] = r.used.PushFront(&cached{name: entry.Name, bytes: size, parsed: p})
	for r.bytes += size; r.bytes > cacheBytes; {
		last := r.used.Back()
		old := r.used.Remove(last).(*cached) //nolint:errcheck,forcetypeassert // the list holds nothing else
		delete(r.known, old.name)
		r.bytes -= old.bytes
	}
}

// leanBytes is the size of the lean blobs of a package.
func leanBytes(entry Package) (sum int64) {
	for _, part := range entry.Lean {
		sum += part.Length
	}
	return sum
}

// readPackage reads the lean blobs of a package.
func (x *Index) readPackage(lean io.ReaderAt, entry Package) (*catalog.Package, error) {
	builder := fbc.NewBuilder(entry.Name, fbc.DefaultLimits())
	number := 0
	for _, part := range entry.Lean {
		content := make([]byte, part.Length)
		if _, err := lean.ReadAt(content, part.Offset); err != nil {
			return nil, fmt.Errorf("reading package %s of a catalog: %w", entry.Name, err)
		}
		for line := range bytes.Lines(content) {
			number++
			builder.Add(fbc.Blob{Path: LeanFile, Number: number, Schema: x.Strings[part.Schema], Package: entry.Name, JSON: line})
		}
	}
	if number == 0 { // blobs of other schemas only
		return &catalog.Package{Name: entry.Name}, nil
	}
	return builder.Package()
}
