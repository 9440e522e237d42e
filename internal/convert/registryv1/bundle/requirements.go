// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

const (
	dependenciesFile = "metadata/dependencies.yaml"
	// maxRequirements bounds what a bundle may ask for, parts of compounds included.
	maxRequirements = 1000
	// RuleRequirements is the rule of problems that only concern requirements.
	RuleRequirements = "P13"
)

// Package is the OLM package that a bundle is a version of.
type Package struct {
	Name    string
	Version string // semantic; empty when the bundle does not say
}

// requiring gathers what a bundle requires, from all the places where it may say so.
type requiring struct {
	bundle   *Bundle
	all      []Requirement
	count    int
	file     string // that is being read
	problems []manifest.Problem
}

// readRequirements gathers what the bundle requires and does not bring itself. OLM v1 ignores the ClusterServiceVersion's
// words on that: what makes no sense there is only warned of. Properties and dependencies are what catalogs are made of,
// and refused there, too, when they make no sense.
func (b *Bundle) readRequirements(files fs.FS, reader *manifest.Reader) []manifest.Problem {
	r := &requiring{bundle: b, file: b.Source.File}
	r.kubernetes()
	r.crds()
	r.apis()
	r.file = propertiesFile
	for _, p := range b.properties {
		r.statement(p, strings.TrimSuffix(p.Type, ".required"), strings.HasSuffix(p.Type, ".required") || p.Type == "olm.constraint")
	}
	r.file = dependenciesFile
	for _, p := range r.dependencies(files, reader) {
		r.statement(p, p.Type, true)
	}
	if r.count > maxRequirements {
		r.refuse(fmt.Sprintf("the bundle has more than %d requirements", maxRequirements), "drop those that follow from others")
		return r.problems
	}
	b.Requirements = distinct(slices.DeleteFunc(r.all, b.brings))
	return r.problems
}

// remedyRequirements adds the remedy of users who cannot change the bundle.
func remedyRequirements(remedy string) string {
	return remedy + ", or set registryV1.requirements to Warn or None"
}

func (r *requiring) refuse(message, remedy string) {
	r.problems = append(r.problems, manifest.Problem{File: r.file, Rule: RuleRequirements, Message: message, Remedy: remedy})
}

func (r *requiring) add(requirement Requirement) {
	r.count += 1 + len(requirement.Of)
	r.all = append(r.all, requirement)
}

// kubernetes reads minKubeVersion.
func (r *requiring) kubernetes() {
	written := strings.TrimSpace(r.bundle.CSV.Spec.MinKubeVersion)
	if written == "" {
		return
	}
	version, err := semver.ParseTolerant(written)
	if err != nil {
		r.bundle.Warn("%s: minKubeVersion %.100q is no version, and is not checked", r.file, written)
		return
	}
	r.add(Requirement{Kind: RequireKubeVersion, Versions: version.String()})
}

// crds reads the CustomResourceDefinitions of others that the ClusterServiceVersion names.
func (r *requiring) crds() {
	for _, crd := range r.bundle.CSV.Spec.CustomResourceDefinitions.Required {
		_, group, _ := strings.Cut(crd.Name, ".")
		if group == "" || crd.Kind == "" {
			r.bundle.Warn("%s: the required CustomResourceDefinition %.100q lacks its group or kind, and is not checked", r.file, crd.Name)
			continue
		}
		r.add(Requirement{Kind: RequireCRD, Name: crd.Name, GVK: schema.GroupVersionKind{Group: group, Version: crd.Version, Kind: crd.Kind}})
	}
}

// apis reads the kinds of extension API servers and of Kubernetes itself.
func (r *requiring) apis() {
	var kinds []schema.GroupVersionKind
	for _, api := range r.bundle.CSV.Spec.APIServiceDefinitions.Required {
		kinds = append(kinds, schema.GroupVersionKind{Group: api.Group, Version: api.Version, Kind: api.Kind})
	}
	for _, api := range r.bundle.CSV.Spec.NativeAPIs {
		kinds = append(kinds, schema.GroupVersionKind{Group: api.Group, Version: api.Version, Kind: api.Kind})
	}
	for _, kind := range kinds {
		if kind.Kind == "" || kind.Version == "" {
			r.bundle.Warn("%s: the required API %.100q lacks its version or kind, and is not checked", r.file, kind)
			continue
		}
		r.add(Requirement{Kind: RequireAPI, GVK: kind})
	}
}

// dependencies reads metadata/dependencies.yaml.
func (r *requiring) dependencies(files fs.FS, reader *manifest.Reader) []property {
	if _, err := fs.Stat(files, dependenciesFile); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	data, problem := reader.ReadFile(dependenciesFile, RuleRequirements)
	if problem != nil {
		r.problems = append(r.problems, *problem)
		return nil
	}
	for _, repeat := range manifest.RepeatsIn(dependenciesFile, data) {
		if repeat.Differ {
			r.refuse(repeat.Message(), remedyRequirements("keep one of them"))
			continue
		}
		r.bundle.warnRepeat(repeat)
	}
	var content struct {
		Dependencies []property `json:"dependencies"`
	}
	if err := yaml.Unmarshal(data, &content); err != nil {
		r.bundle.Warn("%s: this is not a list of dependencies, each with type and value; it is ignored, as by OLM v1", r.file)
		return nil
	}
	return content.Dependencies
}

// statement reads one property or dependency by the kind that both call by the same name. Of properties only some require
// anything; of dependencies all do.
func (r *requiring) statement(p property, kind string, requires bool) {
	if !requires {
		return
	}
	var c constraint
	var err error
	switch kind {
	case "olm.gvk":
		c.GVK = &gvkConstraint{}
		err = json.Unmarshal(p.Value, c.GVK)
	case "olm.package":
		c.Package = &packageConstraint{}
		err = json.Unmarshal(p.Value, c.Package)
	case "olm.constraint":
		err = json.Unmarshal(p.Value, &c)
	default:
		r.bundle.Warn("%s: requirements of type %.100q are not known, and not checked", r.file, p.Type)
		return
	}
	if err != nil {
		r.refuse(fmt.Sprintf("the value of %s is not what that type takes", p.Type), remedyRequirements("correct it"))
		return
	}
	if requirement, checked := r.constraint(c, 0); checked {
		r.add(requirement)
	}
}

// brings tells whether the bundle itself meets a requirement.
func (b *Bundle) brings(r Requirement) bool {
	if r.Kind != RequireCRD && r.Kind != RequireGVK && r.Kind != RequireAPI {
		return false
	}
	return slices.ContainsFunc(b.CRDs, func(crd manifest.Manifest) bool {
		spec, _ := crd.Object.Object["spec"].(map[string]any)
		group, _ := spec["group"].(string)
		kind, _, _ := unstructured.NestedString(spec, "names", "kind")
		return group == r.GVK.Group && kind == r.GVK.Kind && (r.GVK.Version == "" || serves(spec, r.GVK.Version))
	})
}

func serves(spec map[string]any, version string) bool {
	versions, _ := spec["versions"].([]any)
	return slices.ContainsFunc(versions, func(of any) bool {
		fields, _ := of.(map[string]any)
		served, _ := fields["served"].(bool)
		return served && fields["name"] == version
	})
}

// longestVersion is more than any version needs.
const longestVersion = 253

// sensible is a version in words; empty for one that is too long to be one.
func sensible(version semver.Version) string {
	if text := version.String(); len(text) <= longestVersion {
		return text
	}
	return ""
}

// Identify says which version of which package the bundle is: the ClusterServiceVersion's, or the catalog's.
func (b *Bundle) Identify() Package {
	of := Package{Name: b.Package}
	if version := b.CSV.Spec.Version.Version; !version.Equals(semver.Version{}) {
		of.Version = sensible(version)
		return of
	}
	for _, p := range b.properties {
		var value packageVersion
		if p.Type == "olm.package" && json.Unmarshal(p.Value, &value) == nil && value.PackageName == b.Package {
			if version, err := semver.Parse(value.Version); err == nil {
				of.Version = sensible(version)
			}
		}
	}
	return of
}
