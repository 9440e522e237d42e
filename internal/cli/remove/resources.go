// SPDX-License-Identifier: Apache-2.0

package remove

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// Population is the custom resources of one CRD of a bundle that are not objects of the bundle.
type Population struct {
	Definition string   `json:"definition"`
	Kind       string   `json:"kind,omitempty"`
	Count      int      `json:"count"`
	Namespaces []string `json:"namespaces,omitempty"`
	// Deployments are other BundleDeployments that have some of them.
	Deployments []string `json:"deployments,omitempty"`
	// Finalized is how many of them have finalizers, and Finalizers are these.
	Finalized  int      `json:"finalized,omitempty"`
	Finalizers []string `json:"finalizers,omitempty"`
	// Problem says why they could not be counted.
	Problem string `json:"problem,omitempty"`

	resource schema.GroupVersionResource
	members  []member
}

// member is one custom resource.
type member struct {
	namespace, name string
	uid             types.UID
}

// String is the population for people.
func (p Population) String() string {
	if p.Problem != "" {
		return view.Inline(p.Definition) + ": " + view.OneLine(p.Problem, 0)
	}
	text := fmt.Sprintf("%s of %s", view.Plural(p.Count, "resource"), view.Inline(p.Definition))
	if len(p.Namespaces) > 0 {
		shown := p.Namespaces[:min(namedOfKind, len(p.Namespaces))]
		text += " in " + view.WordList(shown)
		if more := len(p.Namespaces) - len(shown); more > 0 {
			text += fmt.Sprintf(" and %d more namespaces", more)
		}
	}
	if len(p.Deployments) > 0 {
		text += ", some of them of " + view.WordList(p.Deployments)
	}
	if p.Finalized > 0 {
		text += fmt.Sprintf("; %d with finalizers (%s), which cannot be deleted without their controller: delete them first", p.Finalized, view.WordList(p.Finalizers[:min(namedOfKind, len(p.Finalizers))]))
	}
	return text
}

// populations counts the custom resources of others of all CRDs of an inventory.
func populations(ctx context.Context, x *kit.Explorer, listed inventory.Inventory) []Population {
	var all []Population
	for _, entry := range listed.Entries {
		if !crds.IsCRD(entry.ID) {
			continue
		}
		if p, found := populationOf(ctx, x, entry.Name, listed); found {
			all = append(all, p)
		}
	}
	return all
}

// populationOf counts those of one CRD; false when there is no such CRD.
func populationOf(ctx context.Context, x *kit.Explorer, definition string, listed inventory.Inventory) (Population, bool) {
	p := Population{Definition: definition}
	crd, err := x.One(ctx, kit.DefinitionsResource, "", definition, true)
	switch {
	case apierrors.IsNotFound(err):
		return p, false
	case err != nil:
		p.Problem = "it cannot be read: " + err.Error()
		return p, true
	}
	if p.resource, p.Kind = servedBy(crd.Body); p.resource.Version == "" {
		p.Problem = "no version of it is served"
		return p, true
	}
	namespaces := map[string]bool{}
	deployed := map[string]bool{}
	finalizers := map[string]bool{}
	_, err = x.Each(ctx, kit.Listing{Resource: p.resource, Limit: inventory.MaxEntries}, func(found kit.Sighting) {
		if listed.Has(inventory.ID{Group: p.resource.Group, Kind: p.Kind, Namespace: found.GetNamespace(), Name: found.GetName()}) {
			return
		}
		p.members = append(p.members, member{found.GetNamespace(), found.GetName(), found.GetUID()})
		of := crds.Finalizers(found.GetFinalizers())
		for _, name := range of {
			finalizers[name] = true
		}
		if len(of) > 0 {
			p.Finalized++
		}
		if found.GetNamespace() != "" {
			namespaces[found.GetNamespace()] = true
		}
		if owner := inventory.OwnerOf(found.GetLabels()); !owner.IsZero() {
			deployed[owner.Namespace+"/"+owner.Name] = true
		}
	})
	if err != nil {
		p.Problem = "its resources cannot be listed: " + err.Error()
	}
	p.Count, p.Finalizers = len(p.members), slices.Sorted(maps.Keys(finalizers))
	p.Namespaces, p.Deployments = slices.Sorted(maps.Keys(namespaces)), slices.Sorted(maps.Keys(deployed))
	return p, true
}

// servedBy is the first served version of a CRD, in which its resources are read.
func servedBy(crd *unstructured.Unstructured) (schema.GroupVersionResource, string) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if served, _ := version["served"].(bool); served {
			name, _ := version["name"].(string)
			return schema.GroupVersionResource{Group: group, Version: name, Resource: plural}, kind
		}
	}
	return schema.GroupVersionResource{}, kind
}

// refuseShared refuses to delete custom resources that other deployments would create again, or that could not be counted.
func (f RemovalPlan) refuseShared() error {
	for _, p := range f.Resources {
		switch {
		case p.Problem != "":
			return fmt.Errorf("the custom resources of %s cannot be deleted: %s", p.Definition, p.Problem)
		case len(p.Deployments) > 0:
			return fmt.Errorf("custom resources of %s belong to %s, which would create them again: delete those first", p.Definition, strings.Join(p.Deployments, ", "))
		}
	}
	return nil
}

// deleteMembers deletes the custom resources that were shown, and none that were created since.
func deleteMembers(ctx context.Context, x *kit.Explorer, p Population) error {
	for _, m := range p.members {
		err := x.Metadata.Resource(p.resource).Namespace(m.namespace).Delete(ctx, m.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.uid}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting %s %s/%s: %w", p.resource.GroupResource(), m.namespace, m.name, err)
		}
	}
	return nil
}
