// SPDX-License-Identifier: Apache-2.0

// Package validate finds the problems of a file-based catalog: all at once, for its author. It demands what
// operator-registry's opm validate demands of packages, channels and bundles, although resolution can do without some of it.
package validate

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/fbc"
)

// Severity of a problem.
type Severity string

// Severities. Only errors make a catalog invalid.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Problem is what is wrong.
type Problem struct {
	Severity Severity
	Package  string // empty for what belongs to no package
	Text     string
}

// Report is the result for a catalog.
type Report struct {
	Packages int
	Bundles  int
	// Problems are in the order of the names of their packages; first, those of no package.
	Problems []Problem
	// Incomplete says that the files could not be read to the end, and that packages were therefore not checked.
	Incomplete bool
}

// Errors counts the problems that make the catalog invalid.
func (r Report) Errors() int {
	n := 0
	for _, p := range r.Problems {
		if p.Severity == Error {
			n++
		}
	}
	return n
}

// Files validates the catalog in a folder or a file.
func Files(files fs.FS, root string, limits fbc.Limits) Report {
	c := &collector{limits: limits, packages: map[string]*contents{}}
	err := fbc.Walk(files, root, limits, c.visit)
	report := Report{Packages: len(c.packages), Bundles: c.bundles, Problems: c.problems}
	if err != nil {
		report.Incomplete = true
		report.Problems = append(report.Problems, Problem{Severity: Error, Text: err.Error()})
	} else {
		for name, p := range c.packages {
			report.Problems = append(report.Problems, p.check(name)...)
		}
	}
	slices.SortStableFunc(report.Problems, func(a, b Problem) int { return strings.Compare(a.Package, b.Package) })
	return report
}

// collector reads all packages.
type collector struct {
	limits   fbc.Limits
	packages map[string]*contents
	bundles  int
	problems []Problem // of blobs
}

// contents is a package with the places of its parts.
type contents struct {
	catalog.Package
	declared []string // where the blobs olm.package are
	channels map[string][]string
	bundles  map[string][]string
}

// visit reads a blob. Blobs with problems are reported, and are no part of the package.
func (c *collector) visit(blob fbc.Blob) error {
	if blob.Package == "" {
		if blob.Problem != nil {
			c.problems = append(c.problems, Problem{Severity: Error, Text: fmt.Sprintf("%s: %v", blob.Where(), blob.Problem)})
		}
		return nil
	}
	p := c.packages[blob.Package]
	if p == nil {
		p = &contents{channels: map[string][]string{}, bundles: map[string][]string{}}
		c.packages[blob.Package] = p
	}
	if blob.Schema == catalog.SchemaBundle {
		c.bundles++
	}
	switch {
	case len(c.packages) > c.limits.Packages:
		return fmt.Errorf("%s: %w", blob.Where(), &fbc.LimitError{What: "packages", Most: int64(c.limits.Packages)})
	case c.bundles > c.limits.Bundles:
		return fmt.Errorf("%s: %w", blob.Where(), &fbc.LimitError{What: "bundles", Most: int64(c.limits.Bundles)})
	}
	p.note(blob)
	one := fbc.NewBuilder(blob.Package, c.limits)
	one.Add(blob)
	part, err := one.Package()
	if err != nil {
		c.problems = append(c.problems, Problem{Severity: Error, Package: blob.Package, Text: err.Error()})
		return nil
	}
	p.Channels = append(p.Channels, part.Channels...)
	p.Bundles = append(p.Bundles, part.Bundles...)
	p.Deprecations = append(p.Deprecations, part.Deprecations...)
	if len(p.declared) == 1 && blob.Schema == catalog.SchemaPackage {
		p.DefaultChannel = part.DefaultChannel
	}
	return nil
}

// note keeps where a blob is.
func (p *contents) note(blob fbc.Blob) {
	switch blob.Schema {
	case catalog.SchemaPackage:
		p.declared = append(p.declared, blob.Where())
	case catalog.SchemaChannel:
		p.channels[blob.Name] = append(p.channels[blob.Name], blob.Where())
	case catalog.SchemaBundle:
		p.bundles[blob.Name] = append(p.bundles[blob.Name], blob.Where())
	}
}

// errNoName is about blobs that others cannot refer to.
var errNoName = errors.New("the field name is missing")
