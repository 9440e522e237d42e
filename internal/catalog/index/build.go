// SPDX-License-Identifier: Apache-2.0

package index

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/fbc"
)

// Build reads the catalog in a folder of files, and writes all blobs and the lean blobs, one a line. An error is about the
// whole catalog. A blob that cannot be read leaves out its package only; the index names the problem.
func Build(files fs.FS, root string, limits fbc.Limits, all, lean io.Writer) (*Index, error) {
	b := &builder{
		limits: limits, all: all, lean: lean, positions: map[string]uint32{}, packages: map[string]*building{},
		provides: map[apiKind]map[string]bool{}, index: Index{},
	}
	b.position("") // of what has no name
	if err := fbc.Walk(files, root, limits, b.add); err != nil {
		return nil, err
	}
	if len(b.index.Blobs) == 0 {
		return nil, fmt.Errorf("the folder %q has no catalog: it has no blob with a schema", root)
	}
	return b.finish(), nil
}

// builder collects the index while the files are read.
type builder struct {
	limits    fbc.Limits
	all, lean io.Writer
	line      bytes.Buffer

	index     Index
	positions map[string]uint32 // in Index.Strings
	packages  map[string]*building
	provides  map[apiKind]map[string]bool // packages by kind
	kinds     int                         // in provides
}

// building is a package of which more blobs may come.
type building struct {
	Package

	hash   hash.Hash
	newest newest
}

// apiKind is a kind of API.
type apiKind struct{ group, version, kind string }

// mostKinds bounds the kinds of all packages: many times what public catalogs have.
const mostKinds = 200_000

func (b *builder) add(blob fbc.Blob) error {
	if blob.Schema == catalog.SchemaBundle {
		b.index.Bundles++
	}
	p, err := b.packageOf(blob)
	if err != nil {
		return err
	}
	if blob.Problem != nil {
		b.problem(p, fmt.Sprintf("%s: %v", blob.Where(), blob.Problem))
		return nil
	}
	var content map[string]any
	if err := json.Unmarshal(blob.JSON, &content); err != nil {
		b.problem(p, fmt.Sprintf("%s: %v", blob.Where(), err))
		return nil
	}
	if err := b.writeAll(blob, content); err != nil || p == nil {
		return err
	}
	if err := usable(blob, b.limits); err != nil {
		b.problem(p, err.Error())
	}
	return b.writeLean(p, blob.Schema, content)
}

// packageOf is the package of a blob; nil if it belongs to none.
func (b *builder) packageOf(blob fbc.Blob) (*building, error) {
	if b.index.Bundles > b.limits.Bundles {
		return nil, fmt.Errorf("%s: %w", blob.Where(), &fbc.LimitError{What: "bundles", Most: int64(b.limits.Bundles)})
	}
	if blob.Package == "" {
		return nil, nil
	}
	p := b.packages[blob.Package]
	if p == nil {
		if len(b.packages) >= b.limits.Packages {
			return nil, fmt.Errorf("%s: package %q: %w", blob.Where(), blob.Package, &fbc.LimitError{What: "packages", Most: int64(b.limits.Packages)})
		}
		p = &building{Package: Package{Name: blob.Package}, hash: sha256.New()}
		b.packages[blob.Package] = p
	}
	return p, nil
}

// problem notes what spoils a package, or a blob of no package. The first problem of a package is kept.
func (b *builder) problem(p *building, text string) {
	switch {
	case p == nil && len(b.index.Problems) < mostProblems:
		b.index.Problems = append(b.index.Problems, "a blob is left out: "+shorten(text))
	case p != nil && p.Problem == "":
		p.Problem = shorten(text)
	}
}

// shorten bounds a text that quotes a catalog.
func shorten(text string) string {
	const most = 400
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// usable checks that resolution can read a blob.
func usable(blob fbc.Blob, limits fbc.Limits) error {
	one := fbc.NewBuilder(blob.Package, limits)
	one.Add(blob)
	_, err := one.Package()
	return err
}

// writeAll writes a blob in the bytes that catalogd serves.
func (b *builder) writeAll(blob fbc.Blob, content map[string]any) error {
	length, err := b.writeLine(b.all, content)
	if err != nil {
		return err
	}
	if b.index.AllBytes+length > b.limits.Bytes { // YAML may stand for more than it is
		return fmt.Errorf("%s: %w", blob.Where(), &fbc.LimitError{What: "bytes of all blobs", Most: b.limits.Bytes})
	}
	field, _ := fieldOf(content, "package").(string)
	b.index.Blobs = append(b.index.Blobs, Blob{
		Offset: b.index.AllBytes, Length: length, Schema: b.position(blob.Schema), Package: b.position(field), Name: b.position(blob.Name),
	})
	b.index.AllBytes += length
	return nil
}

// writeLine writes JSON as catalogd does: sorted fields, numbers as floating-point numbers, no escapes for HTML.
func (b *builder) writeLine(to io.Writer, content map[string]any) (int64, error) {
	b.line.Reset()
	encoder := json.NewEncoder(&b.line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(content); err != nil {
		return 0, err
	}
	n, err := to.Write(b.line.Bytes())
	return int64(n), err
}

// position is that of a string in the index.
func (b *builder) position(text string) uint32 {
	at, known := b.positions[text]
	if !known {
		text = strings.Clone(text)
		at = uint32(len(b.index.Strings)) //nolint:gosec // three a blob, which are bounded by the bytes of the catalog
		b.index.Strings = append(b.index.Strings, text)
		b.positions[text] = at
	}
	return at
}

// writeLean writes what resolution depends on, and notes what people look for.
func (b *builder) writeLean(p *building, schema string, content map[string]any) error {
	switch schema {
	case catalog.SchemaPackage:
		remove(content, "icon")
		remove(content, "description")
	case catalog.SchemaBundle:
		b.bundle(p, content)
	case catalog.SchemaChannel, catalog.SchemaDeprecations:
	default:
		return nil
	}
	length, err := b.writeLine(io.MultiWriter(b.lean, p.hash), content)
	if err != nil {
		return err
	}
	part := Part{Offset: b.index.LeanBytes, Length: length, Schema: b.position(schema)}
	if last := len(p.Lean) - 1; last >= 0 && p.Lean[last].Schema == part.Schema && p.Lean[last].Offset+p.Lean[last].Length == part.Offset {
		p.Lean[last].Length += length
	} else {
		p.Lean = append(p.Lean, part)
	}
	b.index.LeanBytes += length
	return nil
}

// finish returns the index when all blobs were read.
func (b *builder) finish() *Index {
	x := &b.index
	places := map[string]uint32{}
	for _, name := range slices.Sorted(maps.Keys(b.packages)) {
		p := b.packages[name]
		p.Digest = digest.NewDigest(digest.SHA256, p.hash).String()
		p.Description = p.newest.description
		places[name] = uint32(len(x.Packages)) //nolint:gosec // bounded by Limits.Packages
		x.Packages = append(x.Packages, p.Package)
		if p.Problem != "" && len(x.Problems) < mostProblems {
			x.Problems = append(x.Problems, fmt.Sprintf("package %s is left out: %s", shorten(name), p.Problem))
		}
	}
	for kind, packages := range b.provides {
		provided := Provided{Group: kind.group, Version: kind.version, Kind: kind.kind}
		for name := range packages {
			provided.Packages = append(provided.Packages, places[name])
		}
		slices.Sort(provided.Packages)
		x.Provides = append(x.Provides, provided)
	}
	slices.SortFunc(x.Provides, func(a, b Provided) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version))
	})
	return x
}
