// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/cli/check"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// inhabited names another object in the controllers' namespace; empty when there is none.
func (u *uninstaller) inhabited(ctx context.Context, namespace string) (string, error) {
	resources, err := namespacedResources(u.Examiner)
	if err != nil {
		return "", err
	}
	type foreign struct {
		text string
		err  error
	}
	for _, s := range parallel.Each(ctx, kit.AtOnce, resources, func(ctx context.Context, resource schema.GroupVersionResource) foreign {
		text, err := u.foreignObject(ctx, resource, namespace)
		return foreign{text, err}
	}) {
		switch {
		case s.err != nil:
			return "", s.err
		case s.text != "":
			return "it holds other objects, such as " + view.Inline(s.text), nil
		}
	}
	return "", context.Cause(ctx)
}

// namespacedResources are all namespaced kinds, each in one version. It fails if an API server of a kind does not answer,
// because there could be objects of that kind.
func namespacedResources(e *check.Examiner) ([]schema.GroupVersionResource, error) {
	lists, err := e.Discovery.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, fmt.Errorf("listing the kinds of the cluster, to find the objects of the namespace %s: %w", e.Namespace, err)
	}
	var found []schema.GroupVersionResource
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("reading the kinds of %s: %w", list.GroupVersion, err)
		}
		for _, r := range list.APIResources {
			if !slices.Contains(byThemselves, r.Name) {
				found = append(found, group.WithResource(r.Name))
			}
		}
	}
	return found, nil
}

// byThemselves are kinds that the cluster creates for other objects.
var byThemselves = []string{"events", "endpoints", "endpointslices"}

// ofEachNamespace are objects that the cluster creates in each namespace, by kind.
var ofEachNamespace = map[string][]string{
	"configmaps":      {"kube-root-ca.crt", "openshift-service-ca.crt"},
	"serviceaccounts": {"default"},
}

// mostOfKind bounds how many objects of one kind are checked.
const mostOfKind = 200

// foreignObject is an object that belongs neither to the installation nor to one of its objects.
func (u *uninstaller) foreignObject(ctx context.Context, resource schema.GroupVersionResource, namespace string) (string, error) {
	foreign := ""
	_, err := u.Each(ctx, kit.Listing{Resource: resource, Namespace: namespace, Limit: mostOfKind}, func(found kit.Sighting) {
		if foreign == "" && !u.belongs(resource, found) {
			foreign = resource.Resource + " " + found.GetName()
		}
	})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("listing %s in the namespace %s: %w", resource.GroupResource(), namespace, err)
	}
	return foreign, nil
}

// belongs tells whether an object is deleted with the installation anyway.
func (u *uninstaller) belongs(resource schema.GroupVersionResource, found kit.Sighting) bool {
	return len(found.GetOwnerReferences()) > 0 || !found.GetDeletionTimestamp().IsZero() ||
		resource.Group == "" && slices.Contains(ofEachNamespace[resource.Resource], found.GetName()) ||
		slices.ContainsFunc(u.pieces, func(p *piece) bool { return p.live.GetUID() == found.GetUID() }) ||
		slices.ContainsFunc(u.deployments, func(d *unstructured.Unstructured) bool { return d.GetUID() == found.GetUID() })
}

// leaveNamespace removes the labels of the installation from a namespace that existed before.
func (u *uninstaller) leaveNamespace(ctx context.Context, p *piece) error {
	if u.record == nil || u.record.OwnNamespace {
		return nil
	}
	bare := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": p.id.Name}}}
	_, err := u.Bodies.Resource(p.resource).Apply(ctx, p.id.Name, bare, metav1.ApplyOptions{FieldManager: kit.FieldManager, Force: true})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the labels of Satchel from the namespace %s: %w", p.id.Name, err)
	}
	return nil
}
