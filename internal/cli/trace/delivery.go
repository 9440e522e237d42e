// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Delivery is what wrote a BundleDeployment to the cluster: a Kustomization or HelmRelease of Flux, or an Application of
// Argo CD.
type Delivery struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Suspended bool   `json:"suspended,omitempty"`
	// State is its readiness in words; empty where it cannot be read.
	State string `json:"state,omitempty"`
	// Revision was applied last.
	Revision string `json:"revision,omitempty"`
	// From is where its manifests come from.
	From *Origin `json:"from,omitempty"`
}

// Origin is where the manifests of a Delivery come from.
type Origin struct {
	// Kind, Namespace and Name are of the source of Flux; empty for Argo CD.
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Suspended bool   `json:"suspended,omitempty"`
	URL       string `json:"url,omitempty"`
	Path      string `json:"path,omitempty"`
}

// Kinds that deliver manifests.
var (
	kustomizationKind = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
	helmReleaseKind   = schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"}
	applicationKind   = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"}
)

const (
	// argoTracking is the annotation by which Argo CD tracks an object: APPLICATION:GROUP/KIND:NAMESPACE/NAME, with
	// NAMESPACE_NAME as the application where it is not in the namespace of Argo CD.
	argoTracking = "argocd.argoproj.io/tracking-id"
	// argoNamespace is where Applications are by default.
	argoNamespace = "argocd"
)

// deliverer is what the labels and annotations of a deployment name.
type deliverer struct {
	kind            schema.GroupVersionKind
	namespace, name string
	read            func(*Climber, context.Context, *unstructured.Unstructured, *Delivery)
	lists           func(delivery *unstructured.Unstructured, d *v1alpha1.BundleDeployment) bool
}

// delivererOf reads the labels and annotations of a deployment; false where no tool delivered it, as far as they say.
func delivererOf(d *v1alpha1.BundleDeployment) (deliverer, bool) {
	flux := func(kind schema.GroupVersionKind, read func(*Climber, context.Context, *unstructured.Unstructured, *Delivery)) deliverer {
		return deliverer{kind: kind, namespace: d.Labels[kind.Group+"/namespace"], name: d.Labels[kind.Group+"/name"], read: read, lists: fluxLists}
	}
	application, tracked, _ := strings.Cut(d.Annotations[argoTracking], ":")
	namespace, name, other := strings.Cut(application, "_")
	if !other {
		namespace, name = argoNamespace, application
	}
	argo := deliverer{kind: applicationKind, namespace: namespace, name: name, read: (*Climber).readApplication, lists: argoLists}
	if tracked != fmt.Sprintf("%s/%s:%s/%s", v1alpha1.GroupVersion.Group, v1alpha1.BundleDeploymentKind, d.Namespace, d.Name) {
		argo.name = "" // of another object: the annotation was copied
	}
	for _, found := range []deliverer{flux(kustomizationKind, (*Climber).readFlux), flux(helmReleaseKind, (*Climber).readFlux), argo} {
		if IsName(found.namespace) && IsName(found.name) {
			return found, true
		}
	}
	return deliverer{}, false
}

// deliveryOf reads what delivered a deployment; nil if its labels and annotations name nothing.
func (c *Climber) deliveryOf(ctx context.Context, d *v1alpha1.BundleDeployment) *Delivery {
	by, found := delivererOf(d)
	if !found {
		return nil
	}
	delivery := &Delivery{Kind: by.kind.Kind, Namespace: by.namespace, Name: by.name}
	body := c.readBody(ctx, by.kind, by.namespace, by.name, "by which it was delivered, as its labels and annotations say")
	if body == nil {
		return delivery
	}
	by.read(c, ctx, body, delivery)
	if !by.lists(body, d) {
		c.note("%s %s/%s, which the labels of the BundleDeployment name, does not list it: they are copied, or it no longer delivers it", by.kind.Kind, by.namespace, by.name)
	}
	return delivery
}

func (c *Climber) note(format string, args ...any) {
	c.Result.Notes = append(c.Result.Notes, fmt.Sprintf(format, args...))
}

// readBody reads an object; nil if it does not exist or may not be read, which is noted.
func (c *Climber) readBody(ctx context.Context, kind schema.GroupVersionKind, namespace, name, what string) *unstructured.Unstructured {
	mapping, err := c.Mapper.RESTMapping(kind.GroupKind())
	if err != nil {
		c.note("%s %s/%s, %s, cannot be read: this cluster does not serve that kind", kind.Kind, namespace, name, what)
		return nil
	}
	one, err := c.One(ctx, mapping.Resource, namespace, name, true)
	switch {
	case apierrors.IsNotFound(err):
		c.note("%s %s/%s, %s, does not exist here", kind.Kind, namespace, name, what)
		return nil
	case err != nil:
		c.Unreadable("get", mapping.Resource, namespace, err)
		return nil
	}
	return one.Body
}

// readFlux reads a Kustomization or a HelmRelease, and its source.
func (c *Climber) readFlux(ctx context.Context, body *unstructured.Unstructured, delivery *Delivery) {
	delivery.Suspended = isSuspended(body)
	delivery.Revision = textOf(body, "status", "lastAppliedRevision")
	delivery.State = readinessOf(body)
	for _, field := range [][]string{{"sourceRef"}, {"chartRef"}, {"chart", "spec", "sourceRef"}} {
		at := append([]string{"spec"}, field...)
		kind, name := textOf(body, append(slices.Clone(at), "kind")...), textOf(body, append(slices.Clone(at), "name")...)
		namespace := textOf(body, append(slices.Clone(at), "namespace")...)
		if namespace == "" {
			namespace = body.GetNamespace()
		}
		if kind != "" && IsName(name) && IsName(namespace) {
			delivery.From = c.fluxOrigin(ctx, kind, namespace, name)
			delivery.From.Path = textOf(body, "spec", "path")
			return
		}
	}
}

// fluxOrigin reads the source of a Kustomization or HelmRelease.
func (c *Climber) fluxOrigin(ctx context.Context, kind, namespace, name string) *Origin {
	origin := &Origin{Kind: kind, Namespace: namespace, Name: name}
	body := c.readBody(ctx, schema.GroupVersionKind{Group: fluxSourceGroup, Kind: kind}, namespace, name, "from which it is delivered")
	if body != nil {
		origin.URL = textOf(body, "spec", "url")
		origin.Suspended = isSuspended(body)
	}
	return origin
}

// readApplication reads an Application of Argo CD.
func (c *Climber) readApplication(_ context.Context, body *unstructured.Unstructured, delivery *Delivery) {
	var words []string
	for _, part := range [][]string{{"status", "sync", "status"}, {"status", "health", "status"}} {
		if word := textOf(body, part...); word != "" {
			words = append(words, word)
		}
	}
	delivery.State = strings.Join(words, ", ")
	delivery.Revision = textOf(body, "status", "sync", "revision")
	if url := textOf(body, "spec", "source", "repoURL"); url != "" {
		delivery.From = &Origin{URL: url, Path: textOf(body, "spec", "source", "path")}
	}
}

// fluxLists tells whether the inventory of a Kustomization has a deployment. A HelmRelease has none, and is believed.
func fluxLists(delivery *unstructured.Unstructured, d *v1alpha1.BundleDeployment) bool {
	if delivery.GetKind() != kustomizationKind.Kind {
		return true
	}
	entries, _, _ := unstructured.NestedSlice(delivery.Object, "status", "inventory", "entries")
	id := fmt.Sprintf("%s_%s_%s_%s", d.Namespace, d.Name, v1alpha1.GroupVersion.Group, v1alpha1.BundleDeploymentKind)
	return slices.ContainsFunc(entries, func(entry any) bool {
		fields, _ := entry.(map[string]any)
		return fields["id"] == id
	})
}

// argoLists tells whether an Application has a deployment among its resources.
func argoLists(delivery *unstructured.Unstructured, d *v1alpha1.BundleDeployment) bool {
	resources, _, _ := unstructured.NestedSlice(delivery.Object, "status", "resources")
	return slices.ContainsFunc(resources, func(resource any) bool {
		fields, _ := resource.(map[string]any)
		return fields["group"] == v1alpha1.GroupVersion.Group && fields["kind"] == v1alpha1.BundleDeploymentKind &&
			fields["namespace"] == d.Namespace && fields["name"] == d.Name
	})
}

func textOf(body *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedString(body.Object, fields...)
	return value
}

func isSuspended(body *unstructured.Unstructured) bool {
	value, _, _ := unstructured.NestedBool(body.Object, "spec", "suspend")
	return value
}

// readinessOf is the condition Ready in words.
func readinessOf(body *unstructured.Unstructured) string {
	ready := conditionOf(body, v1alpha1.ReadyCondition)
	switch {
	case ready == nil:
		return "not reconciled yet"
	case ready["status"] == string(metav1.ConditionTrue):
		return "Ready"
	}
	return fmt.Sprintf("not Ready, %v: %v", ready["reason"], ready["message"])
}

// conditionOf is a condition of an object; nil if it has none of that type.
func conditionOf(body *unstructured.Unstructured, kind string) map[string]any {
	list, _, _ := unstructured.NestedSlice(body.Object, "status", "conditions")
	for _, item := range list {
		if fields, _ := item.(map[string]any); fields["type"] == kind {
			return fields
		}
	}
	return nil
}
