// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// leftover is an object of a former owner that the bundle does not contain.
type leftover struct {
	ID    string `json:"object"`
	Owner string `json:"owner"`

	id   inventory.ID
	kind schema.GroupVersionKind
	live *metav1.PartialObjectMetadata
}

// deletable tells whether --delete-leftovers may delete the object: deleting a CRD deletes all its custom resources.
func (l leftover) deletable() bool { return l.id.Kind != "CustomResourceDefinition" }

// installedKinds are the kinds of objects that installers create in addition to those of a bundle.
var installedKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ServiceAccount"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
}

// leftovers looks for what else the former owners installed, in the namespaces of the bundle's objects. What the user may
// not list is named in a note.
func (w *adopter) leftovers(ctx context.Context, found Adoption) ([]leftover, []string) {
	if len(found.Former) == 0 {
		return nil, nil
	}
	bundle := map[inventory.ID]bool{}
	namespaces := []string{effective.InstallNamespace(w.object)}
	kinds := slices.Clone(installedKinds)
	for _, o := range found.Objects {
		bundle[o.id] = true
		if o.id.Namespace != "" && !slices.Contains(namespaces, o.id.Namespace) {
			namespaces = append(namespaces, o.id.Namespace)
		}
		if !slices.Contains(kinds, o.kind) {
			kinds = append(kinds, o.kind)
		}
	}
	var left []leftover
	var unknown []string
	for _, kind := range kinds {
		all, err := w.listEach(ctx, kind, namespaces)
		if err != nil {
			unknown = append(unknown, kind.Kind)
			continue
		}
		for i := range all {
			id := inventory.ID{Group: kind.Group, Kind: kind.Kind, Namespace: all[i].Namespace, Name: all[i].Name}
			if owner := formerOf(&all[i], found.Former); owner != "" && !bundle[id] {
				left = append(left, leftover{ID: id.String(), Owner: owner, id: id, kind: kind, live: &all[i]})
			}
		}
	}
	slices.SortFunc(left, func(a, b leftover) int { return a.id.Compare(b.id) })
	if len(unknown) == 0 {
		return left, nil
	}
	return left, []string{"the former owner may have more objects, of kinds that you lack permission to list: " + strings.Join(unknown, ", ")}
}

// listEach lists the metadata of a kind: in some namespaces, or in the cluster. A kind that is not served has no objects.
func (w *adopter) listEach(ctx context.Context, kind schema.GroupVersionKind, namespaces []string) ([]metav1.PartialObjectMetadata, error) {
	one := &metav1.PartialObjectMetadata{}
	one.SetGroupVersionKind(kind)
	namespaced, err := w.any.IsObjectNamespaced(one)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !namespaced {
		namespaces = []string{""}
	}
	var all []metav1.PartialObjectMetadata
	for _, namespace := range namespaces {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := w.any.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

// formerOf names the one of the owners that an object belongs to; empty: none.
func formerOf(object metav1.Object, owners []Former) string {
	for _, mine := range FormersOf(object) {
		for _, owner := range owners {
			sameUID := mine.uid != "" && mine.uid == owner.uid
			sameName := mine.Kind == owner.Kind && mine.Group == owner.Group && mine.Name == owner.Name &&
				(mine.Namespace == owner.Namespace || mine.Namespace == "" || owner.Namespace == "")
			if sameUID || mine.uid == "" && sameName {
				return owner.String()
			}
		}
	}
	return ""
}

// deleteLeftovers deletes what the former owners left, each as it was seen.
func (w *adopter) deleteLeftovers(ctx context.Context, left []leftover) error {
	for _, l := range left {
		if !l.deletable() {
			continue
		}
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(l.kind)
		object.SetNamespace(l.id.Namespace)
		object.SetName(l.id.Name)
		uid := l.live.UID
		err := w.any.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting %s of the former owner: %w", l.ID, err)
		}
		fmt.Fprintf(w.app.Streams.Out, "%s: deleted\n", view.Inline(l.ID))
	}
	return nil
}
