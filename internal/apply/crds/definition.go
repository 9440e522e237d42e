// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// The group and the kind of CRDs themselves.
const (
	DefinitionGroup = "apiextensions.k8s.io"
	DefinitionKind  = "CustomResourceDefinition"
)

// Definition is a kind that is defined by a CRD of the bundle.
type Definition struct {
	Name       string // of the CRD: <plural>.<group>
	Group      string
	Plural     string
	Namespaced bool
	Served     []string // versions
}

// Definitions reads the kinds that the CRDs among the objects define. Objects that cannot
// be read as a CRD are skipped: the API server will say why.
func Definitions(objects []*unstructured.Unstructured) map[schema.GroupKind]Definition {
	definitions := map[schema.GroupKind]Definition{}
	for _, object := range objects {
		if object.GetKind() != DefinitionKind || !IsCRD(inventory.IDOf(object)) {
			continue
		}
		if kind, definition := definitionOf(object); definition.wellFormed() {
			definitions[kind] = definition
		}
	}
	return definitions
}

// IsCRD tells whether an object is a CRD.
func IsCRD(id inventory.ID) bool {
	return id.Group == DefinitionGroup && id.Kind == DefinitionKind
}

// wellFormed tells whether an API server would accept the CRD
// and serve it under its name: its parts become those of request paths, which
// must not lead to other resources.
func (d Definition) wellFormed() bool {
	return strings.Contains(d.Group, ".") && len(validation.IsDNS1123Subdomain(d.Group)) == 0 &&
		len(validation.IsDNS1035Label(d.Plural)) == 0 && d.Name == d.Plural+"."+d.Group &&
		!slices.ContainsFunc(d.Served, func(version string) bool { return len(validation.IsDNS1035Label(version)) > 0 })
}

func definitionOf(crd *unstructured.Unstructured) (schema.GroupKind, Definition) {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(crd.Object, fields...)
		return value
	}
	definition := Definition{
		Name:       crd.GetName(),
		Group:      text("spec", "group"),
		Plural:     text("spec", "names", "plural"),
		Namespaced: text("spec", "scope") == "Namespaced",
		Served:     ServedVersions(crd),
	}
	return schema.GroupKind{Group: definition.Group, Kind: text("spec", "names", "kind")}, definition
}

// IDOfCRD is the identity of the CRD that would define a resource.
func IDOfCRD(resource schema.GroupResource) inventory.ID {
	return inventory.ID{Group: DefinitionGroup, Kind: DefinitionKind, Name: resource.String()}
}
