// SPDX-License-Identifier: Apache-2.0

// Package configmap takes the keys of a ConfigMap as files. It needs no network: the caller has read the object.
package configmap

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"io"
	"maps"
	"slices"

	digests "github.com/opencontainers/go-digest"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// Options is the content of one ConfigMap.
type Options struct {
	// Name is for messages.
	Name string
	// Data and BinaryData are those of the object; each key is a file.
	Data       map[string]string
	BinaryData map[string][]byte
}

// Fetcher is the content of one ConfigMap.
type Fetcher struct {
	name  string
	files []file
}

type file struct {
	name string
	data []byte
}

// New returns the fetcher of a ConfigMap's content.
func New(o Options) (*Fetcher, error) {
	f := &Fetcher{name: o.Name}
	for _, name := range slices.Sorted(maps.Keys(o.Data)) {
		f.files = append(f.files, file{name, []byte(o.Data[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(o.BinaryData)) {
		if _, twice := o.Data[name]; twice {
			return nil, fetch.Errorf(fetch.InvalidContent, "config map %s: the key %s is in data and in binaryData",
				o.Name, fetch.Quote(name))
		}
		f.files = append(f.files, file{name, o.BinaryData[name]})
	}
	slices.SortFunc(f.files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return f, nil
}

// Resolve returns the digest of all keys and their content; it is the same for the same files.
func (f *Fetcher) Resolve(context.Context) (fetch.Resolved, error) {
	digester := digests.Canonical.Digester()
	for _, file := range f.files {
		writePart(digester.Hash(), []byte(file.name))
		writePart(digester.Hash(), file.data)
	}
	return fetch.Resolved{Digest: digester.Digest().String()}, nil
}

// writePart writes data after its length, so that no two lists of parts look alike. A hash takes everything.
func writePart(w io.Writer, data []byte) {
	_, _ = w.Write(binary.BigEndian.AppendUint64(nil, uint64(len(data))))
	_, _ = w.Write(data)
}

// Fetch writes the files.
func (f *Fetcher) Fetch(ctx context.Context, r fetch.Resolved, tree *fetch.Tree) (fetch.Resolved, error) {
	now, err := f.Resolve(ctx)
	if err != nil {
		return fetch.Resolved{}, err
	}
	if r.Digest != now.Digest {
		return fetch.Resolved{}, fetch.Errorf(fetch.Moved, "config map %s: its content changed: resolve again", f.name)
	}
	for _, file := range f.files {
		if err := tree.WriteFile(file.name, bytes.NewReader(file.data)); err != nil {
			return fetch.Resolved{}, fetch.Describe(err, "config map %s", f.name)
		}
	}
	return r, nil
}
