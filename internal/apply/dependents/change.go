// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
)

// Change is what a plan changes of what other deployments may require.
type Change struct {
	before, after requirement.Package // the package of the deployment; without a name: none
	// written are the kinds of the CRDs that the plan writes, and deleted the names of those that it deletes.
	written map[schema.GroupKind]crds.Definition
	deleted map[string]bool
	// services are the API groups of extension API servers that the plan deletes.
	services map[schema.GroupVersion]bool
	// groups are those of all these CRDs and services, without the CRDs that the plan creates.
	groups map[string]bool
}

// ChangeOf is what a plan changes, if the deployment goes from one package to another.
func ChangeOf(made plan.Plan, before, after requirement.Package) Change {
	c := Change{before: before, after: after, deleted: map[string]bool{}, services: map[schema.GroupVersion]bool{}, groups: map[string]bool{}}
	var written []*unstructured.Unstructured
	for action := range made.Actions() {
		if !crds.IsCRD(action.ID) || action.Verb == plan.Unchanged || action.Desired == nil {
			continue
		}
		written = append(written, action.Desired)
		if action.Verb != plan.Create {
			c.groups[groupOf(action.ID)] = true
		}
	}
	c.written = crds.Definitions(written)
	for _, stage := range slices.Concat(made.PruneFirst, made.Prune) {
		for _, deletion := range stage.Deletions {
			if deletion.Deletes() {
				c.delete(deletion.ID)
			}
		}
	}
	return c
}

// delete notes an object that the plan deletes.
func (c *Change) delete(id inventory.ID) {
	switch {
	case crds.IsCRD(id):
		c.deleted[id.Name], c.groups[groupOf(id)] = true, true
	case id.Group == "apiregistration.k8s.io" && id.Kind == "APIService":
		version, group, _ := strings.Cut(id.Name, ".")
		c.services[schema.GroupVersion{Group: group, Version: version}], c.groups[group] = true, true
	}
}

// groupOf is the API group of a CRD, by its name.
func groupOf(id inventory.ID) string {
	_, group, _ := strings.Cut(id.Name, ".")
	return group
}

// IsEmpty tells that nothing changes that others could require.
func (c Change) IsEmpty() bool {
	return len(c.groups) == 0 && (c.before.Name == "" || c.before == c.after)
}

// concerns tells whether a requirement is about something that changes.
func (c Change) concerns(r requirement.Requirement) bool {
	switch {
	case r.Kind == requirement.RequirePackage:
		return r.Name == c.before.Name && c.before != c.after
	case r.GVK.Kind != "":
		return c.groups[r.GVK.Group]
	}
	return slices.ContainsFunc(r.Of, c.concerns)
}

// serves tells whether the cluster serves a kind after the plan. The resource is how it serves it before; empty if it does not.
func (c Change) serves(kind schema.GroupVersionKind, before schema.GroupVersionResource) bool {
	if written, found := c.written[kind.GroupKind()]; found {
		return kind.Version == "" && len(written.Served) > 0 || slices.Contains(written.Served, kind.Version)
	}
	return before.Resource != "" && !c.deleted[before.GroupResource().String()] && !c.services[before.GroupVersion()]
}
