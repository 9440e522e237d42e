// SPDX-License-Identifier: Apache-2.0

// Package registriesconf reads the mirrors of a registries.conf of containers (CRI-O, Podman), version 2, as the mirror sets of
// OpenShift that package migrate translates. Nothing is dropped silently: what has no counterpart is a note or a problem.
package registriesconf

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// rule of the problems.
const rule = "source"

// document is the part of the file that is about mirrors.
type document struct {
	Registries []registry `toml:"registry"`
}

type registry struct {
	Prefix       string   `toml:"prefix"`
	Location     string   `toml:"location"`
	Blocked      bool     `toml:"blocked"`
	Insecure     bool     `toml:"insecure"`
	ByDigestOnly bool     `toml:"mirror-by-digest-only"`
	Mirrors      []mirror `toml:"mirror"`
}

type mirror struct {
	Location string `toml:"location"`
	Insecure bool   `toml:"insecure"`
	Pull     string `toml:"pull-from-mirror"`
}

// Found is what a file says.
type Found struct {
	Manifests []manifest.Manifest
	Problems  []manifest.Problem
	Notes     []string
}

// Read reads a file. Mirrors of digests become an ImageDigestMirrorSet, and those of tags an ImageTagMirrorSet.
func Read(file string, data []byte) Found {
	var found Found
	var content document
	meta, err := toml.Decode(string(data), &content)
	if err != nil {
		found.problem(file, "it is no TOML: "+err.Error(), "correct it")
		return found
	}
	for _, key := range meta.Undecoded() {
		found.note("%s has no counterpart", key)
	}
	var digests, tags []any
	for _, r := range content.Registries {
		entry, ofTags := found.entry(file, r)
		switch {
		case entry == nil:
		case ofTags:
			tags = append(tags, entry)
		default:
			digests = append(digests, entry)
		}
	}
	name := nameOf(file)
	found.add(file, name, "ImageDigestMirrorSet", "imageDigestMirrors", digests)
	found.add(file, name+"-tags", "ImageTagMirrorSet", "imageTagMirrors", tags)
	if len(found.Manifests) == 0 && len(found.Problems) == 0 {
		found.problem(file, "it has no [[registry]] with mirrors", "leave it out; a file of version 1 has to be written in version 2 first")
	}
	return found
}

func (f *Found) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

func (f *Found) problem(file, message, remedy string) {
	f.Problems = append(f.Problems, manifest.Problem{File: file, Rule: rule, Message: message, Remedy: remedy})
}

// add adds a mirror set, if there are entries.
func (f *Found) add(file, name, kind, field string, entries []any) {
	if len(entries) == 0 {
		return
	}
	f.Manifests = append(f.Manifests, manifest.Manifest{File: file, Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": map[string]any{field: entries},
	}}})
}

// entry is one registry in the form of a mirror set; nil for one without effect, or with a problem.
func (f *Found) entry(file string, r registry) (entry map[string]any, ofTags bool) {
	source := r.Prefix
	if source == "" {
		source = r.Location
	}
	moved := r.Location != "" && r.Location != source
	if len(r.Mirrors) == 0 && !r.Blocked && !moved {
		f.note("the registry %q has no mirrors, and is left out", source)
		return nil, false
	}
	mirrors, ofTags, mixed := f.mirrors(r)
	if moved {
		// What has the prefix is at another place, and never at its own.
		mirrors = append(mirrors, r.Location)
		mixed = mixed || len(r.Mirrors) > 0 && !ofTags
		ofTags = true
	}
	if mixed {
		f.problem(file, fmt.Sprintf("some mirrors of the registry %q are for digests only, and others for tags, too", source),
			"write its BundleImagePolicy by hand, or divide the registry")
		return nil, false
	}
	entry = map[string]any{"source": source, "mirrors": mirrors}
	if r.Blocked || moved {
		entry["mirrorSourcePolicy"] = "NeverContactSource"
	}
	return entry, ofTags
}

// mirrors are the places of a registry's mirrors, and whether they are asked for tags. They are mixed if only some are.
func (f *Found) mirrors(r registry) (mirrors []any, ofTags, mixed bool) {
	insecure := r.Insecure
	digestsOnly := 0
	for _, m := range r.Mirrors {
		mirrors = append(mirrors, m.Location)
		insecure = insecure || m.Insecure
		if r.ByDigestOnly || m.Pull == "digest-only" {
			digestsOnly++
		}
	}
	if insecure {
		f.note("insecure of the registry %q is not translated: for plain HTTP set insecure in the BundleImagePolicy, for an authority of your own certSecretRef",
			firstOf(r.Prefix, r.Location))
	}
	return mirrors, digestsOnly < len(r.Mirrors), digestsOnly > 0 && digestsOnly < len(r.Mirrors)
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// notInNames are characters that names of objects do not have.
var notInNames = regexp.MustCompile(`[^a-z0-9-]+`)

// nameOf is a name of objects after a file.
func nameOf(file string) string {
	base := path.Base(strings.ReplaceAll(file, `\`, "/"))
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(strings.TrimSuffix(base, path.Ext(base))), "-"), "-")
	return firstOf(name, "registries")
}
