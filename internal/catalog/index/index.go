// SPDX-License-Identifier: Apache-2.0

package index

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/satchel-dev/satchel/internal/format"
)

// Names of the files of indexed contents.
const (
	AllFile   = "all.jsonl"
	LeanFile  = "lean.jsonl"
	ListFile  = "list.jsonl"
	IndexFile = "index"
)

// Index says where the blobs and packages of a catalog are in its files.
type Index struct {
	// Strings are the schemas, packages and names of blobs.
	Strings []string
	// Blobs are in the order of the file with all blobs.
	Blobs []Blob
	// Packages are sorted by name.
	Packages []Package
	// Provides are sorted by kind.
	Provides []Provided
	// Problems are what is left out or wrong, at most 100.
	Problems []string
	// Bundles is how many blobs olm.bundle there are.
	Bundles int
	// AllBytes and LeanBytes are the sizes of the two streams.
	AllBytes, LeanBytes int64
}

// Extent is a part of a file.
type Extent struct {
	_ struct{} `cbor:",toarray"`

	Offset, Length int64
}

// Blob is one line of the file with all blobs. Schema, Package and Name are positions in Index.Strings. Package is the field
// package of the blob, which an olm.package does not have.
type Blob struct {
	_ struct{} `cbor:",toarray"`

	Offset, Length        int64
	Schema, Package, Name uint32
}

// Part is a part of the file with lean blobs: blobs of one package and one schema, which is a position in Index.Strings.
type Part struct {
	_ struct{} `cbor:",toarray"`

	Offset, Length int64
	Schema         uint32
}

// Package says where a package is in the file with lean blobs.
type Package struct {
	Name string
	// Digest is that of the lean blobs, "sha256:<hex>": it changes if and only if resolution may.
	Digest string
	// Lean are the parts of the file with the lean blobs, in order.
	Lean []Part
	// Problem is why the package cannot be used; "" if it can.
	Problem string
	// Description is for people.
	Description Description
}

// Description is what the newest bundle of a package says about it.
type Description struct {
	DisplayName string   `json:"displayName,omitempty"`
	Provider    string   `json:"provider,omitempty"`
	Keywords    []string `json:"keywords,omitempty"`
	// Text is the beginning of the description.
	Text string `json:"description,omitempty"`
}

// Provided is a kind of API, and the packages with a bundle that provides it.
type Provided struct {
	Group, Version, Kind string
	// Packages are positions in Index.Packages, in order.
	Packages []uint32
}

// mostProblems bounds the problems that an index keeps.
const mostProblems = 100

var (
	encoding = must(cbor.CoreDetEncOptions().EncMode())
	decoding = must(cbor.DecOptions{MaxArrayElements: 1 << 21, MaxMapPairs: 64, MaxNestedLevels: 16}.DecMode())
)

func must[T any](mode T, err error) T {
	if err != nil {
		panic(err) //nolint:forbidigo // the options above contradict each other
	}
	return mode
}

// Encode returns the content of the index file. Equal indexes have equal bytes.
func (x *Index) Encode() ([]byte, error) {
	encoded, err := encoding.Marshal(x)
	if err != nil {
		return nil, err
	}
	return format.Index.Prepend(encoded), nil
}

// Decode reads what Encode returned. An index that points outside of its files or names is refused, since a reader relies on it.
func Decode(data []byte) (*Index, error) {
	x := &Index{}
	data, err := format.Index.Cut(data)
	if err != nil {
		return nil, fmt.Errorf("decoding the index of a catalog: %w", err)
	}
	if err := decoding.Unmarshal(data, x); err != nil {
		return nil, fmt.Errorf("decoding the index of a catalog: %w", err)
	}
	if err := x.check(); err != nil {
		return nil, fmt.Errorf("the index of a catalog is damaged: %w", err)
	}
	return x, nil
}

func (x *Index) check() error {
	end := int64(0)
	for _, blob := range x.Blobs {
		known := uint64(len(x.Strings))
		if uint64(blob.Schema) >= known || uint64(blob.Package) >= known || uint64(blob.Name) >= known {
			return errors.New("a blob has a name that is not there")
		}
		if blob.Offset != end || blob.Length <= 0 || blob.Length > x.AllBytes-end {
			return errors.New("a blob is outside of its file")
		}
		end += blob.Length
	}
	if end != x.AllBytes || x.LeanBytes < 0 {
		return errors.New("its sizes are wrong")
	}
	if err := x.checkPackages(); err != nil {
		return err
	}
	for _, provided := range x.Provides {
		for _, position := range provided.Packages {
			if int64(position) >= int64(len(x.Packages)) {
				return errors.New("a kind is of a package that is not there")
			}
		}
	}
	return nil
}

func (x *Index) checkPackages() error {
	for i, p := range x.Packages {
		if i > 0 && x.Packages[i-1].Name >= p.Name {
			return errors.New("its packages are not sorted")
		}
		for _, part := range p.Lean {
			if uint64(part.Schema) >= uint64(len(x.Strings)) || part.Offset < 0 || part.Length <= 0 || part.Offset > x.LeanBytes || part.Length > x.LeanBytes-part.Offset {
				return errors.New("a package is outside of its file")
			}
		}
	}
	return nil
}

// Find returns a package by name.
func (x *Index) Find(name string) (Package, bool) {
	i, found := slices.BinarySearchFunc(x.Packages, name, func(p Package, name string) int { return strings.Compare(p.Name, name) })
	if !found {
		return Package{}, false
	}
	return x.Packages[i], true
}

// Providers are the packages that provide a kind, sorted. Those that cannot be used are left out.
func (x *Index) Providers(group, version, kind string) []string {
	for _, provided := range x.Provides {
		if provided.Group != group || provided.Version != version || provided.Kind != kind {
			continue
		}
		var names []string
		for _, position := range provided.Packages {
			if p := x.Packages[position]; p.Problem == "" {
				names = append(names, p.Name)
			}
		}
		return names
	}
	return nil
}

// Usable counts the packages without a problem.
func (x *Index) Usable() int {
	count := 0
	for _, p := range x.Packages {
		if p.Problem == "" {
			count++
		}
	}
	return count
}

// Query selects blobs by fields; an empty field selects all.
type Query struct{ Schema, Package, Name string }

// Select returns where the blobs of a query are in the file with all blobs, in order. Neighbors are joined.
func (x *Index) Select(q Query) []Extent {
	var parts []Extent
	for _, blob := range x.Blobs {
		if matches(q.Schema, x.Strings[blob.Schema]) && matches(q.Package, x.Strings[blob.Package]) && matches(q.Name, x.Strings[blob.Name]) {
			parts = join(parts, blob.Offset, blob.Length)
		}
	}
	return parts
}

func matches(wanted, value string) bool { return wanted == "" || wanted == value }

// join appends a part of a file to those before.
func join(parts []Extent, offset, length int64) []Extent {
	if last := len(parts) - 1; last >= 0 && parts[last].Offset+parts[last].Length == offset {
		parts[last].Length += length
		return parts
	}
	return append(parts, Extent{Offset: offset, Length: length})
}
