// SPDX-License-Identifier: Apache-2.0

package lean

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/satchel-dev/satchel/internal/catalog"
)

// Builder collects the lean content of one package.
type Builder struct {
	limits  Limits
	built   catalog.Package
	any     bool // there was a blob
	marked  bool // there was a blob with deprecations
	problem error
	// dependencies says that what bundles require and provide is read as well.
	dependencies bool
}

// NewBuilder returns a Builder without blobs.
func NewBuilder(name string, limits Limits) *Builder {
	return &Builder{limits: limits, built: catalog.Package{Name: name}}
}

// NewDependencyBuilder returns a Builder that also reads what bundles require and provide.
func NewDependencyBuilder(name string, limits Limits) *Builder {
	b := NewBuilder(name, limits)
	b.dependencies = true
	return b
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
	case catalog.SchemaPackage:
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
	if Unmarshal(text, &blob) == nil && b.built.DefaultChannel == "" {
		b.built.DefaultChannel = blob.DefaultChannel
	}
}

func (b *Builder) channel(text []byte) error {
	var channel catalog.Channel
	if err := Unmarshal(text, &channel); err != nil {
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

// property is one property of a bundle.
type property struct {
	Type  string
	Value json.RawMessage
}

func (b *Builder) bundle(text []byte) error {
	var bundle struct {
		Name, Image string
		Properties  []property
	}
	if err := Unmarshal(text, &bundle); err != nil {
		return err
	}
	lean := catalog.Bundle{Name: bundle.Name, Image: bundle.Image}
	lean.VersionProblem = fmt.Sprintf("no package property found in bundle %q", bundle.Name)
	for _, property := range bundle.Properties {
		if property.Type != catalog.SchemaPackage {
			continue
		}
		var err error
		lean.VersionProblem = ""
		if lean.Version, err = packageVersion(property.Value); err != nil {
			lean.VersionProblem = err.Error()
		}
		break // the first one counts
	}
	if b.dependencies {
		lean.Requires, lean.Provides = dependencies(bundle.Properties)
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
	if err := Unmarshal(text, &blob); err != nil || b.marked {
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
