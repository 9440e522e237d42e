// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/lean"
)

const schemaPackage = catalog.SchemaPackage

// Contents is what was asked for, and what else there is.
type Contents struct {
	// Package is nil if the catalog has no blob of it, or if Problem says why it cannot be used.
	Package *catalog.Package
	// Problem is why the package cannot be used.
	Problem error
	// Packages are the names of all packages, sorted.
	Packages []string
	// Problems are blobs that belong to no package and are left out.
	Problems []error
}

// mostProblems bounds the problems that are kept.
const mostProblems = 20

// ReadPackage reads one package of the catalog in a folder or file. The error is about the whole catalog.
func ReadPackage(files fs.FS, root, name string, limits Limits) (Contents, error) {
	var contents Contents
	packages := map[string]bool{}
	bundles := 0
	builder := NewBuilder(name, limits)
	err := Walk(files, root, limits, func(blob Blob) error {
		if blob.Package != "" {
			packages[blob.Package] = true
		}
		if blob.Schema == catalog.SchemaBundle {
			bundles++
		}
		switch {
		case len(packages) > limits.Packages:
			return fmt.Errorf("%s: %w", blob.Where(), &LimitError{What: "packages", Most: int64(limits.Packages)})
		case bundles > limits.Bundles:
			return fmt.Errorf("%s: %w", blob.Where(), &LimitError{What: "bundles", Most: int64(limits.Bundles)})
		case blob.Package == name && name != "":
			builder.Add(blob)
		case blob.Package == "" && blob.Problem != nil && len(contents.Problems) < mostProblems:
			contents.Problems = append(contents.Problems, fmt.Errorf("%s is left out: %w", blob.Where(), blob.Problem))
		}
		return nil
	})
	if err != nil {
		return Contents{}, err
	}
	contents.Packages = slices.Sorted(maps.Keys(packages))
	contents.Package, contents.Problem = builder.Package()
	return contents, nil
}

// Whole is all packages of a catalog, with what their bundles require and provide.
type Whole struct {
	Packages map[string]*catalog.Package
	// Unusable says why packages cannot be used.
	Unusable map[string]error
}

// ReadAll reads all packages of the catalog in a folder or file, with their dependencies. The error is about the whole
// catalog.
func ReadAll(files fs.FS, root string, limits Limits) (Whole, error) {
	builders := map[string]*Builder{}
	bundles := 0
	err := Walk(files, root, limits, func(blob Blob) error {
		if blob.Package == "" {
			return nil
		}
		if blob.Schema == catalog.SchemaBundle {
			bundles++
		}
		builder := builders[blob.Package]
		if builder == nil {
			builder = lean.NewDependencyBuilder(blob.Package, limits)
			builders[blob.Package] = builder
		}
		switch {
		case len(builders) > limits.Packages:
			return fmt.Errorf("%s: %w", blob.Where(), &LimitError{What: "packages", Most: int64(limits.Packages)})
		case bundles > limits.Bundles:
			return fmt.Errorf("%s: %w", blob.Where(), &LimitError{What: "bundles", Most: int64(limits.Bundles)})
		}
		builder.Add(blob)
		return nil
	})
	if err != nil {
		return Whole{}, err
	}
	all := Whole{Packages: map[string]*catalog.Package{}, Unusable: map[string]error{}}
	for name, builder := range builders {
		built, problem := builder.Package()
		if problem != nil {
			all.Unusable[name] = problem
			continue
		}
		all.Packages[name] = built
	}
	return all, nil
}

// Providers are the packages with a bundle that provides a kind, sorted.
func (w *Whole) Providers(kind catalog.Kind) []string {
	var names []string
	for name, p := range w.Packages {
		if slices.ContainsFunc(p.Bundles, func(b catalog.Bundle) bool { return slices.Contains(b.Provides, kind) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
