// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RequirementKind is what a requirement asks for.
type RequirementKind string

// Kinds of requirements.
const (
	// RequireCRD: a CustomResourceDefinition of others. Name is its name, GVK what it defines.
	RequireCRD RequirementKind = "CRD"
	// RequireAPI: a kind that the cluster itself or an extension API server brings. GVK.
	RequireAPI RequirementKind = "API"
	// RequireGVK: a kind, from any provider. GVK.
	RequireGVK RequirementKind = "GVK"
	// RequirePackage: an OLM package. Name is its name, Versions the range; empty: any.
	RequirePackage RequirementKind = "Package"
	// RequireKubeVersion: a version of Kubernetes. Versions is the least one.
	RequireKubeVersion RequirementKind = "KubeVersion"
	// RequireAll, RequireAny, RequireNone: a compound of Of; Message is its author's word on what it means.
	RequireAll  RequirementKind = "All"
	RequireAny  RequirementKind = "Any"
	RequireNone RequirementKind = "None"
)

// Requirement is something that a bundle needs of the cluster and does not bring itself.
type Requirement struct {
	Kind     RequirementKind
	Name     string
	GVK      schema.GroupVersionKind // the version may be empty: any
	Versions string
	Message  string
	Of       []Requirement
}

// String is the requirement for people: "package etcd in version >=0.9.0".
func (r Requirement) String() string {
	switch r.Kind {
	case RequireCRD:
		return fmt.Sprintf("CustomResourceDefinition %s (%s)", r.Name, kindText(r.GVK))
	case RequireAPI, RequireGVK:
		return kindText(r.GVK)
	case RequirePackage:
		return strings.TrimSuffix(fmt.Sprintf("package %s in version %s", r.Name, r.Versions), " in version ")
	case RequireKubeVersion:
		return "Kubernetes " + r.Versions + " or newer"
	}
	var parts []string
	for _, part := range r.Of {
		parts = append(parts, part.String())
	}
	return strings.ToLower(string(r.Kind)) + " of (" + strings.Join(parts, "; ") + ")"
}

func kindText(gvk schema.GroupVersionKind) string {
	return fmt.Sprintf("kind %s of %s", gvk.Kind, strings.Trim(gvk.GroupVersion().String(), "/"))
}

// compare orders requirements by what they ask for.
func (r Requirement) compare(other Requirement) int {
	return cmp.Or(strings.Compare(string(r.Kind), string(other.Kind)), strings.Compare(r.String(), other.String()), strings.Compare(r.Message, other.Message))
}

// distinct sorts requirements, and drops those that say what another one says, too: a CRD also names its kind.
func distinct(all []Requirement) []Requirement {
	named := map[schema.GroupVersionKind]RequirementKind{}
	for _, kind := range []RequirementKind{RequireGVK, RequireAPI, RequireCRD} {
		for _, r := range all {
			if r.Kind == kind {
				named[r.GVK] = kind
			}
		}
	}
	all = slices.DeleteFunc(all, func(r Requirement) bool {
		kind, found := named[r.GVK]
		return found && len(r.Of) == 0 && (r.Kind == RequireGVK || r.Kind == RequireAPI) && r.Kind != kind
	})
	slices.SortFunc(all, Requirement.compare)
	return slices.CompactFunc(all, func(a, b Requirement) bool { return a.compare(b) == 0 })
}
