// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// Properties of bundles that the index reads, or leaves out of the lean blobs because they make catalogs large.
const (
	propertyMetadata = "olm.csv.metadata"
	propertyObject   = "olm.bundle.object"
	propertyGVK      = "olm.gvk"
	propertyPackage  = "olm.package"
)

// Bounds of a Description.
const (
	mostNameRunes = 100
	mostKeywords  = 20
	mostTextRunes = 200
)

// newest is the highest version of a package so far.
type newest struct {
	any         bool
	version     semver.Version
	description Description
}

// bundle leaves the large properties and the related images out of a bundle, and notes the kinds that it provides and its description.
func (b *builder) bundle(p *building, content map[string]any) {
	properties, _ := fieldOf(content, "properties").([]any)
	var kept []any
	var metadata map[string]any
	version := semver.Version{}
	for _, entry := range properties {
		property, _ := entry.(map[string]any)
		kind, _ := fieldOf(property, "type").(string)
		value, _ := fieldOf(property, "value").(map[string]any)
		switch kind {
		case propertyMetadata:
			metadata = value
			continue
		case propertyObject:
			continue
		case propertyGVK:
			b.provide(p, value)
		case propertyPackage:
			if parsed, err := semver.Parse(text(value, "version")); err == nil {
				version = parsed
			}
		}
		kept = append(kept, entry)
	}
	remove(content, "relatedImages")
	if len(kept) < len(properties) {
		replace(content, "properties", kept)
	}
	if metadata != nil && (!p.newest.any || version.GTE(p.newest.version)) {
		p.newest = newest{any: true, version: version, description: describe(metadata)}
	}
}

// provide notes a kind of a bundle.
func (b *builder) provide(p *building, value map[string]any) {
	kind := apiKind{group: text(value, "group"), version: text(value, "version"), kind: text(value, "kind")}
	packages := b.provides[kind]
	if packages == nil {
		packages = map[string]bool{}
	}
	if kind.kind == "" || packages[p.Name] || b.kinds >= mostKinds {
		return
	}
	b.kinds++
	packages[p.Name] = true
	b.provides[kind] = packages
}

// describe reads the metadata of a ClusterServiceVersion.
func describe(metadata map[string]any) Description {
	provider, _ := fieldOf(metadata, "provider").(map[string]any)
	found := Description{
		DisplayName: beginning(text(metadata, "displayName"), mostNameRunes),
		Provider:    beginning(text(provider, "name"), mostNameRunes),
		Text:        beginning(text(metadata, "description"), mostTextRunes),
	}
	keywords, _ := fieldOf(metadata, "keywords").([]any)
	for _, keyword := range keywords[:min(len(keywords), mostKeywords)] {
		if word, ok := keyword.(string); ok {
			found.Keywords = append(found.Keywords, beginning(word, mostNameRunes))
		}
	}
	return found
}

// beginning is the first runes of a text.
func beginning(text string, most int) string {
	text = strings.ToValidUTF8(strings.TrimSpace(text), "")
	count := 0
	for at := range text {
		if count == most {
			return strings.Clone(text[:at])
		}
		count++
	}
	return strings.Clone(text)
}

// fieldOf returns a field by its name, in upper and lower case, as encoding/json reads it.
func fieldOf(content map[string]any, name string) any {
	if value, found := content[name]; found {
		return value
	}
	for key, value := range content {
		if strings.EqualFold(key, name) {
			return value
		}
	}
	return nil
}

func text(content map[string]any, name string) string {
	value, _ := fieldOf(content, name).(string)
	return value
}

// remove removes a field by its name, in upper and lower case.
func remove(content map[string]any, name string) {
	for key := range content {
		if strings.EqualFold(key, name) {
			delete(content, key)
		}
	}
}

// replace replaces a field by its name, in upper and lower case.
func replace(content map[string]any, name string, value []any) {
	remove(content, name)
	content[name] = slices.Clip(value)
}
