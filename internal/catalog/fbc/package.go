// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/satchel-dev/satchel/internal/catalog"
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
	lean := NewBuilder(name, limits)
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
			lean.Add(blob)
		case blob.Package == "" && blob.Problem != nil && len(contents.Problems) < mostProblems:
			contents.Problems = append(contents.Problems, fmt.Errorf("%s is left out: %w", blob.Where(), blob.Problem))
		}
		return nil
	})
	if err != nil {
		return Contents{}, err
	}
	contents.Packages = slices.Sorted(maps.Keys(packages))
	contents.Package, contents.Problem = lean.Package()
	return contents, nil
}

// Builder collects the lean content of one package.
type Builder struct {
	limits  Limits
	built   catalog.Package
	any     bool // there was a blob
	marked  bool // there was a blob with deprecations
	problem error
}

// NewBuilder returns a Builder without blobs.
func NewBuilder(name string, limits Limits) *Builder {
	return &Builder{limits: limits, built: catalog.Package{Name: name}}
}

// Package returns what was collected, nil if that is nothing, and the first problem, which spoils the package.
func (b *Builder) Package() (*catalog.Package, error) {
	if !b.any || b.problem != nil {
		return nil, b.problem
	}
	return &b.built, nil
}

// Add reads a blob of the package. Blobs of other schemas count only in so far as the catalog has the package then.
func (b *Builder) Add(blob Blob) {
	b.any = true
	err := blob.Problem
	if err == nil {
		err = b.add(blob)
	}
	if err != nil && b.problem == nil {
		b.problem = fmt.Errorf("%s: %s %q: %w", blob.Where(), blob.Schema, blob.Name, err)
	}
}

func (b *Builder) add(blob Blob) error {
	switch blob.Schema {
	case schemaPackage:
		b.defaultChannel(blob.JSON)
	case catalog.SchemaChannel:
		return b.channel(blob.JSON)
	case catalog.SchemaBundle:
		return b.bundle(blob.JSON)
	case catalog.SchemaDeprecations:
		return b.deprecations(blob.JSON)
	}
	return nil
}

// defaultChannel reads what only people look at: it refuses nothing.
func (b *Builder) defaultChannel(text []byte) {
	var blob struct{ DefaultChannel string }
	if unmarshal(text, &blob) == nil && b.built.DefaultChannel == "" {
		b.built.DefaultChannel = blob.DefaultChannel
	}
}

func (b *Builder) channel(text []byte) error {
	var channel catalog.Channel
	if err := unmarshal(text, &channel); err != nil {
		return err
	}
	if len(channel.Entries) > b.limits.Entries {
		return &LimitError{What: "entries", Most: int64(b.limits.Entries)}
	}
	for _, entry := range channel.Entries {
		if len(entry.Skips) > b.limits.Skips {
			return fmt.Errorf("entry %q: %w", entry.Name, &LimitError{What: "skips", Most: int64(b.limits.Skips)})
		}
	}
	b.built.Channels = append(b.built.Channels, channel)
	return nil
}

func (b *Builder) bundle(text []byte) error {
	var bundle struct {
		Name, Image string
		Properties  []struct {
			Type  string
			Value json.RawMessage
		}
	}
	if err := unmarshal(text, &bundle); err != nil {
		return err
	}
	lean := catalog.Bundle{Name: bundle.Name, Image: bundle.Image}
	lean.VersionProblem = fmt.Sprintf("no package property found in bundle %q", bundle.Name)
	for _, property := range bundle.Properties {
		if property.Type != schemaPackage {
			continue
		}
		var err error
		lean.VersionProblem = ""
		if lean.Version, err = packageVersion(property.Value); err != nil {
			lean.VersionProblem = err.Error()
		}
		break // the first one counts
	}
	b.built.Bundles = append(b.built.Bundles, lean)
	return nil
}

// packageVersion returns the version of a property olm.package. Its errors are in the words of OLM v1, because they
// become part of refusals, which are the same for both. They contain the name of the type.
func packageVersion(value json.RawMessage) (string, error) {
	type Package struct {
		PackageName string `json:"packageName"`
		Version     string `json:"version"`
		Release     string `json:"release"`
	}
	var property Package
	err := json.Unmarshal(value, &property)
	var mismatch *json.UnmarshalTypeError
	switch {
	case err == nil:
		return property.Version, nil
	case errors.As(err, &mismatch) && mismatch.Field == "":
		return "", fmt.Errorf("error unmarshalling package property: json: cannot unmarshal %s into Go value of type property.Package", mismatch.Value)
	}
	return "", fmt.Errorf("error unmarshalling package property: %w", err)
}

func (b *Builder) deprecations(text []byte) error {
	var blob struct {
		Entries []struct {
			Reference struct{ Schema, Name string }
			Message   string
		}
	}
	if err := unmarshal(text, &blob); err != nil || b.marked {
		return err
	}
	b.marked = true
	for _, entry := range blob.Entries {
		b.built.Deprecations = append(b.built.Deprecations, catalog.Deprecation{
			Schema: entry.Reference.Schema, Name: entry.Reference.Name, Message: entry.Message,
		})
	}
	return nil
}
