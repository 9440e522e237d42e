// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// RequirementKind is the kind of a requirement.
type RequirementKind string

// Kinds of requirements.
const (
	// RequireCRD: the kind GVK, which the CRD Name defines.
	RequireCRD RequirementKind = "CRD"
	// RequireAPI: the kind GVK of Kubernetes or of an extension API server.
	RequireAPI RequirementKind = "API"
	// RequireGVK: the kind GVK, from any source.
	RequireGVK RequirementKind = "GVK"
	// RequirePackage: the OLM package Name in a version of the range Versions; empty: in any.
	RequirePackage RequirementKind = "Package"
	// RequireKubeVersion: Kubernetes, at least in Versions.
	RequireKubeVersion RequirementKind = "KubeVersion"
	// RequireAll, RequireAny, RequireNone: a compound of Of.
	RequireAll  RequirementKind = "All"
	RequireAny  RequirementKind = "Any"
	RequireNone RequirementKind = "None"
)

// Requirement is something that the bundle needs of the cluster.
type Requirement struct {
	Kind     RequirementKind
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
	// KubeVersion as the API server returns it: v1.36.3. Empty: the account may not read it.
	KubeVersion string
	Packages    []Package
}

// ToAsk returns the kinds that the requirements are about, and whether they are about
// the version of Kubernetes. Nothing when requirements are off.
func (in Input) ToAsk() (kinds []schema.GroupVersionKind, version bool) {
	if !in.RequirementsPolicy.on() {
		return nil, false
	}
	var walk func([]Requirement)
	walk = func(requirements []Requirement) {
		for _, r := range requirements {
			switch r.Kind {
			case RequireCRD, RequireAPI, RequireGVK:
				kinds = append(kinds, r.GVK)
			}
			walk(r.Of)
			version = version || r.asksVersion()
		}
	}
	walk(in.Requirements)
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(kinds), version
}

// met tells whether the facts satisfy a requirement.
func (f Facts) met(r Requirement) bool {
	meets := func(part Requirement) bool { return f.met(part) }
	switch r.Kind {
	case RequireCRD, RequireAPI, RequireGVK:
		return f.Kinds[r.GVK]
	case RequirePackage:
		return slices.ContainsFunc(f.Packages, func(p Package) bool { return p.Name == r.Name && inRange(p.Version, r.Versions) })
	case RequireKubeVersion:
		return atLeast(f.KubeVersion, r.Versions)
	case RequireAll:
		return !slices.ContainsFunc(r.Of, func(part Requirement) bool { return !f.met(part) })
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

// requirements turns unmet requirements into violations, or into warnings.
func (in Input) requirements() ([]Violation, []string) {
	if !in.RequirementsPolicy.on() {
		return nil, nil
	}
	reported := map[schema.GroupKind]bool{}
	for _, missing := range in.Missing {
		reported[missing.GroupKind()] = true
	}
	var violations []Violation
	var warnings []string
	for _, r := range in.Requirements {
		if in.Facts.met(r) || len(r.Of) == 0 && r.GVK.Kind != "" && reported[r.GVK.GroupKind()] {
			continue // reported already by an object of that kind in the bundle
		}
		violation := in.Facts.unmet(r)
		if in.RequirementsPolicy == Enforce {
			violations = append(violations, violation)
		} else {
			warnings = append(warnings, violation.Message)
		}
	}
	return violations, warnings
}

// unmet is the violation for a requirement that the cluster does not meet.
func (f Facts) unmet(r Requirement) Violation {
	const orWarn = "set spec.registryV1.requirements to Warn"
	violation := Violation{Rule: RequirementMissing}
	switch r.Kind {
	case RequireCRD:
		violation.Object = inventory.ID{Group: definitionGroup, Kind: definitionKind, Name: r.Name}
		violation.Message = fmt.Sprintf("the bundle needs the CustomResourceDefinition %s, and the cluster does not know kind %s of %s", r.Name, r.GVK.Kind, kindGroup(r.GVK))
		violation.Remedy = fmt.Sprintf("install what brings it for group %q, or, where the operator does without, %s", r.GVK.Group, orWarn)
	case RequireAPI, RequireGVK:
		violation.Message = fmt.Sprintf("the bundle needs kind %s of %s, which the cluster does not know", r.GVK.Kind, kindGroup(r.GVK))
		violation.Remedy = fmt.Sprintf("install what serves group %q in that version, or, where the operator does without, %s", r.GVK.Group, orWarn)
	case RequirePackage:
		violation.Message = "the bundle needs " + r.text() + f.instead(r.Name)
		violation.Remedy = fmt.Sprintf("install %s with a BundleDeployment in this namespace, or, where it comes from elsewhere, %s", r.text(), orWarn)
	case RequireKubeVersion:
		violation.Message = fmt.Sprintf("the bundle needs Kubernetes %s or newer, and the cluster has %s", r.Versions, f.KubeVersion)
		violation.Remedy = "upgrade the cluster, install an older version of the bundle, or " + orWarn
		if f.KubeVersion == "" {
			violation.Message = fmt.Sprintf("the bundle needs Kubernetes %s or newer, and the account may not ask for the cluster's version", r.Versions)
			violation.Remedy = grantVersion + ", or " + orWarn
		}
	default:
		violation.Message = "the bundle needs " + r.text()
		if r.Message != "" {
			violation.Message += fmt.Sprintf(" (its author says: %s)", r.Message)
		}
		violation.Remedy = "install what is missing and remove what is excluded, packages with BundleDeployments in this namespace, or " + orWarn
		if f.KubeVersion == "" && r.asksVersion() {
			violation.Remedy = "as the account may not ask for the cluster's version, " + grantVersion + "; then " + violation.Remedy
		}
	}
	return violation
}

// grantVersion is the remedy where the account may not read the version.
const grantVersion = "grant the account permission to get the URL /version (in nonResourceURLs of a ClusterRole, as system:public-info-viewer has it)"

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

// text describes the requirement inside a sentence.
func (r Requirement) text() string {
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
		parts = append(parts, part.text())
	}
	if more := len(r.Of) - mostParts; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.ToLower(string(r.Kind)) + " of (" + strings.Join(parts, "; ") + ")"
}

// mostParts is how many parts of a compound are named.
const mostParts = 10

func kindGroup(gvk schema.GroupVersionKind) string {
	return strings.Trim(gvk.GroupVersion().String(), "/")
}
