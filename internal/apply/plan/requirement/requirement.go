// SPDX-License-Identifier: Apache-2.0

package requirement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is the kind of a requirement.
type Kind string

// Kinds of requirements.
const (
	// RequireCRD: the kind GVK, which the CRD Name defines.
	RequireCRD Kind = "CRD"
	// RequireAPI: the kind GVK of Kubernetes or of an extension API server.
	RequireAPI Kind = "API"
	// RequireGVK: the kind GVK, from any source.
	RequireGVK Kind = "GVK"
	// RequirePackage: the OLM package Name in a version of the range Versions; empty: in any.
	RequirePackage Kind = "Package"
	// RequireKubeVersion: Kubernetes, at least in Versions.
	RequireKubeVersion Kind = "KubeVersion"
	// RequireAll, RequireAny, RequireNone: a compound of Of.
	RequireAll  Kind = "All"
	RequireAny  Kind = "Any"
	RequireNone Kind = "None"
)

// Requirement is something that the bundle needs of the cluster.
type Requirement struct {
	Kind     Kind
	Name     string
	GVK      schema.GroupVersionKind // the version may be empty: any
	Versions string
	Message  string // the author's description of a compound
	Of       []Requirement
}

// Package is a package that a deployment of the same namespace has installed.
type Package struct {
	Name    string
	Version string // semantic; empty when unknown
}

// Facts are the facts about the cluster that requirements are checked against.
type Facts struct {
	// Kinds are the required ones that are served.
	Kinds map[schema.GroupVersionKind]bool
	// KubeVersion as the API server returns it: v1.36.3. Empty: the ServiceAccount may not read it.
	KubeVersion string
	Packages    []Package
	// Offers are the packages of catalogs that provide what is lacking, as far as that is known. They only add to remedies.
	Offers map[Need][]Offer
}

// Met tells whether the facts satisfy a requirement.
func (f Facts) Met(r Requirement) bool {
	meets := func(part Requirement) bool { return f.Met(part) }
	switch r.Kind {
	case RequireCRD, RequireAPI, RequireGVK:
		return f.Kinds[r.GVK]
	case RequirePackage:
		return slices.ContainsFunc(f.Packages, func(p Package) bool { return p.Name == r.Name && inRange(p.Version, r.Versions) })
	case RequireKubeVersion:
		return atLeast(f.KubeVersion, r.Versions)
	case RequireAll:
		return !slices.ContainsFunc(r.Of, func(part Requirement) bool { return !f.Met(part) })
	case RequireAny:
		return slices.ContainsFunc(r.Of, meets)
	case RequireNone:
		return !slices.ContainsFunc(r.Of, meets)
	}
	return false
}

// inRange tells whether a version lies in a range; an unknown one lies only in the
// range of all versions.
func inRange(version, versions string) bool {
	if versions == "" {
		return true
	}
	parsed, err := semver.ParseTolerant(version)
	if err != nil {
		return false
	}
	allowed, err := semver.ParseRange(versions)
	return err == nil && allowed(parsed)
}

// atLeast compares a Kubernetes version without the suffixes of distributions.
func atLeast(version, least string) bool {
	has, err := semver.ParseTolerant(version)
	if err != nil {
		return false
	}
	needs, err := semver.ParseTolerant(least)
	has.Pre, has.Build = nil, nil
	return err == nil && has.GTE(needs)
}

// grantVersion is the remedy where the ServiceAccount may not read the version.
const grantVersion = "grant the ServiceAccount permission to get the URL /version (in nonResourceURLs of a ClusterRole, as system:public-info-viewer has it)"

// asksVersion tells whether a requirement is about the version of Kubernetes.
func (r Requirement) asksVersion() bool {
	return r.Kind == RequireKubeVersion || slices.ContainsFunc(r.Of, Requirement.asksVersion)
}

// instead lists the installed versions of a package when none of them is in the required
// range.
func (f Facts) instead(name string) string {
	var versions []string
	for _, p := range f.Packages {
		if p.Name == name {
			versions = append(versions, orUnknown(p.Version))
		}
	}
	if len(versions) == 0 {
		return ""
	}
	slices.Sort(versions)
	return ", and has it in version " + strings.Join(slices.Compact(versions), ", ")
}

func orUnknown(version string) string {
	if version == "" {
		return "an unknown version"
	}
	return version
}

// String describes the requirement inside a sentence.
func (r Requirement) String() string {
	switch r.Kind {
	case RequireCRD, RequireAPI, RequireGVK:
		return fmt.Sprintf("kind %s of %s", r.GVK.Kind, kindGroup(r.GVK))
	case RequirePackage:
		if r.Versions == "" {
			return "package " + r.Name
		}
		return fmt.Sprintf("package %s in version %s", r.Name, r.Versions)
	case RequireKubeVersion:
		return "Kubernetes " + r.Versions + " or newer"
	}
	var parts []string
	for _, part := range r.Of[:min(len(r.Of), mostParts)] {
		parts = append(parts, part.String())
	}
	if more := len(r.Of) - mostParts; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.ToLower(string(r.Kind)) + " of (" + strings.Join(parts, "; ") + ")"
}

// mostParts is how many parts of a compound are named.
const mostParts = 10

// kindGroup is the group and version of a kind, as apiVersion has them.
func kindGroup(gvk schema.GroupVersionKind) string {
	return strings.Trim(gvk.GroupVersion().String(), "/")
}
