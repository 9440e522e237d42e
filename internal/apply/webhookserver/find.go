// SPDX-License-Identifier: Apache-2.0

// Package webhookserver finds the workloads behind the Service of a conversion webhook, among desired objects or on the
// cluster, and tells whether they are available.
package webhookserver

import (
	"context"
	"fmt"
	"math"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

var (
	services = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	pods     = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// workload is a kind with Pods that stay, and where its status counts those that can be called.
type workload struct {
	resource schema.GroupVersionResource
	ready    []string
}

var workloads = map[string]workload{
	"Deployment":  {appsResource("deployments"), []string{"status", "availableReplicas"}},
	"StatefulSet": {appsResource("statefulsets"), []string{"status", "availableReplicas"}},
	"DaemonSet":   {appsResource("daemonsets"), []string{"status", "numberAvailable"}},
}

func appsResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: name}
}

// Server is what serves a webhook.
type Server struct {
	// Workloads with Pods that the Service selects.
	Workloads []plan.Object
	// Lacking is what does not exist, or is not ready, beside the workloads.
	Lacking []health.Object
	// Unknown says why it cannot be known whether the webhook answers; empty when it can.
	Unknown string
}

// planned is what the desired objects have of the server of a webhook.
type planned struct {
	service   *unstructured.Unstructured // nil: it is not among them
	workloads []plan.Object

	phase int // the last one of these
}

// among finds the Service among desired objects, and the workloads with its selector.
func among(objects []plan.Object, service types.NamespacedName) planned {
	found := planned{phase: math.MinInt}
	for _, object := range objects {
		if object.ID == serviceID(service) {
			found.service, found.phase = object.Desired, object.Phase
		}
	}
	found.find(objects, service.Namespace, selectorOf(found.service))
	return found
}

// find adds the workloads that a selector selects.
func (f *planned) find(objects []plan.Object, namespace string, selector labels.Selector) {
	if selector == nil {
		return
	}
	for _, object := range objects {
		if object.Namespace == namespace && serves(object.Desired, selector) {
			f.workloads = append(f.workloads, object)
			f.phase = max(f.phase, object.Phase)
		}
	}
}

// AtOnce says why a CRD has to be applied with its conversion webhook before that can answer, among desired objects; empty
// where it need not, or changes nothing that is called.
func AtOnce(live, crd *unstructured.Unstructured, objects []plan.Object) string {
	if why := crds.WhyNoInterim(live, crd); why != "" {
		return why
	}
	if crds.Interim(live, crd) == nil {
		return ""
	}
	former := crds.ServedVersions(live)
	server := among(objects, *crds.ConversionService(crd))
	for _, object := range objects {
		if object.Definition == crd.GetName() && !slices.Contains(former, object.Resource.Version) && object.Phase < server.phase {
			return fmt.Sprintf("%s needs it before phase %d, in which its server is applied", object.ID, server.phase)
		}
	}
	return ""
}

// Find finds what serves a webhook: among the desired objects, or on the cluster as the tenant.
func Find(ctx context.Context, client *tenant.Client, objects []plan.Object, service types.NamespacedName) (Server, error) {
	desired := among(objects, service)
	live := desired.service
	if live == nil {
		var err error
		live, err = client.Get(ctx, tenant.RefTo(serviceID(service), services))
		switch {
		case apierrors.IsNotFound(err):
			return lacks(service, health.Missing, "it does not exist: install what contains it"), nil
		case apierrors.IsForbidden(err):
			return Server{Unknown: fmt.Sprintf("the ServiceAccount may not get %s", serviceID(service))}, nil
		case err != nil:
			return Server{}, fmt.Errorf("reading %s: %w", serviceID(service), err)
		}
	}
	selector := selectorOf(live)
	if selector == nil {
		return Server{Unknown: fmt.Sprintf("%s has no selector", serviceID(service))}, nil
	}
	desired.workloads = nil
	desired.find(objects, service.Namespace, selector)
	if len(desired.workloads) > 0 {
		return Server{Workloads: desired.workloads}, nil
	}
	return onCluster(ctx, client, service, selector)
}

// onCluster finds the workloads, or else a ready Pod, that a Service selects and the plan does not contain.
func onCluster(ctx context.Context, client *tenant.Client, service types.NamespacedName, selector labels.Selector) (Server, error) {
	var found Server
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		ref := tenant.Ref{Resource: workloads[kind].resource, Namespace: service.Namespace}
		err := each(ctx, client, ref, "", func(object *unstructured.Unstructured) bool {
			if serves(object, selector) {
				found.Workloads = append(found.Workloads, plan.Object{ID: inventory.IDOf(object), Kind: plan.Kind{Resource: ref.Resource, Namespaced: true}})
			}
			return len(found.Workloads) < mostWorkloads
		})
		if err != nil && !apierrors.IsForbidden(err) {
			return Server{}, fmt.Errorf("listing the objects of kind %s in namespace %s: %w", kind, service.Namespace, err)
		}
	}
	if len(found.Workloads) > 0 {
		return found, nil
	}
	ready := false
	err := each(ctx, client, tenant.Ref{Resource: pods, Namespace: service.Namespace}, selector.String(), func(pod *unstructured.Unstructured) bool {
		ready = podReady(pod)
		return !ready
	})
	switch {
	case apierrors.IsForbidden(err):
		return Server{Unknown: fmt.Sprintf("the ServiceAccount may not list the Pods of %s", serviceID(service))}, nil
	case err != nil:
		return Server{}, fmt.Errorf("listing the Pods of %s: %w", serviceID(service), err)
	case !ready:
		return lacks(service, health.InProgress, "it selects no Deployment, StatefulSet or DaemonSet, and no Pod that is ready: "+selector.String()), nil
	}
	return found, nil
}

// Limits of what is read to find the server of a webhook: who serves the API of a remote cluster chooses how much there is.
const (
	mostPages     = 10
	mostWorkloads = 100
)

// each calls a function for the objects of a collection, until it wants no more.
func each(ctx context.Context, client *tenant.Client, ref tenant.Ref, selector string, call func(*unstructured.Unstructured) (more bool)) error {
	whole, err := client.EachItem(ctx, ref, selector, mostPages, call)
	if err == nil && !whole {
		err = fmt.Errorf("there are more than %d", mostPages*tenant.PageSize)
	}
	return err
}

func lacks(service types.NamespacedName, state health.State, message string) Server {
	return Server{Lacking: []health.Object{{ID: serviceID(service), State: state, Message: message}}}
}

func serviceID(service types.NamespacedName) inventory.ID {
	return inventory.ID{Kind: "Service", Namespace: service.Namespace, Name: service.Name}
}

// selectorOf is the selector of a Service; nil without one.
func selectorOf(service *unstructured.Unstructured) labels.Selector {
	if service == nil {
		return nil
	}
	kind, _, _ := unstructured.NestedString(service.Object, "spec", "type")
	selected, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
	if kind == "ExternalName" || len(selected) == 0 {
		return nil
	}
	return labels.SelectorFromSet(selected)
}

// serves tells whether an object is a workload with Pods that a selector selects.
func serves(object *unstructured.Unstructured, selector labels.Selector) bool {
	if object == nil || workloads[object.GetKind()].ready == nil || object.GroupVersionKind().Group != "apps" {
		return false
	}
	template, _, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
	return selector.Matches(labels.Set(template))
}

func podReady(pod *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		if fields["type"] == "Ready" && fields["status"] == "True" {
			return pod.GetDeletionTimestamp() == nil
		}
	}
	return false
}
