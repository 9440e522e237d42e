// SPDX-License-Identifier: Apache-2.0

package cli

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
)

// inhabited says what else lives in the controllers' namespace; empty when nothing does.
func (u *uninstaller) inhabited(ctx context.Context, namespace string) (string, error) {
	resources, err := u.namespacedResources()
	if err != nil {
		return "", err
	}
	type stranger struct {
		text string
		err  error
	}
	for _, s := range parallel.Each(ctx, atOnce, resources, func(ctx context.Context, resource schema.GroupVersionResource) stranger {
		text, err := u.strangerOf(ctx, resource, namespace)
		return stranger{text, err}
	}) {
		switch {
		case s.err != nil:
			return "", s.err
		case s.text != "":
			return "other objects live in it, such as " + inline(s.text), nil
		}
	}
	return "", context.Cause(ctx)
}

// namespacedResources are all kinds of objects that can live in a namespace, each in one version. A kind whose server does
// not answer could hide somebody's objects.
func (e *examiner) namespacedResources() ([]schema.GroupVersionResource, error) {
	lists, err := e.discovery.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, fmt.Errorf("listing the kinds of the cluster, to see what lives in the namespace %s: %w", e.namespace, err)
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

// byThemselves are kinds that the cluster makes for other objects.
var byThemselves = []string{"events", "endpoints", "endpointslices"}

// ofEachNamespace are objects that the cluster makes in each namespace, by kind.
var ofEachNamespace = map[string][]string{
	"configmaps":      {"kube-root-ca.crt", "openshift-service-ca.crt"},
	"serviceaccounts": {"default"},
}

// mostOfKind bounds how many objects of one kind are looked at.
const mostOfKind = 200

// strangerOf is an object that belongs neither to the installation nor to one that does.
func (u *uninstaller) strangerOf(ctx context.Context, resource schema.GroupVersionResource, namespace string) (string, error) {
	stranger := ""
	_, err := u.each(ctx, listing{resource: resource, namespace: namespace, limit: mostOfKind}, func(found sighting) {
		if stranger == "" && !u.belongs(resource, found) {
			stranger = resource.Resource + " " + found.GetName()
		}
	})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("listing %s in the namespace %s: %w", resource.GroupResource(), namespace, err)
	}
	return stranger, nil
}

// belongs tells whether an object goes anyway.
func (u *uninstaller) belongs(resource schema.GroupVersionResource, found sighting) bool {
	return len(found.GetOwnerReferences()) > 0 || !found.GetDeletionTimestamp().IsZero() ||
		resource.Group == "" && slices.Contains(ofEachNamespace[resource.Resource], found.GetName()) ||
		slices.ContainsFunc(u.pieces, func(p *piece) bool { return p.live.GetUID() == found.GetUID() }) ||
		slices.ContainsFunc(u.deployments, func(d *unstructured.Unstructured) bool { return d.GetUID() == found.GetUID() })
}

// leaveNamespace takes back what the installation wrote to a namespace that was there before.
func (u *uninstaller) leaveNamespace(ctx context.Context, p *piece) error {
	if u.record == nil || u.record.OwnNamespace {
		return nil
	}
	bare := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": p.id.Name}}}
	_, err := u.bodies.Resource(p.resource).Apply(ctx, p.id.Name, bare, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("taking the labels of Satchel off the namespace %s: %w", p.id.Name, err)
	}
	return nil
}
