// SPDX-License-Identifier: Apache-2.0

// Package imagepolicies reads BundleImagePolicies for the controllers of BundleSources and BundleCatalogs, and tells them which
// objects a change of a policy concerns.
package imagepolicies

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/imagepolicy"
)

// Read returns the policies that count in a namespace. Shared is the shared namespace, "" for none.
func Read(ctx context.Context, reader client.Reader, namespace, shared string) (imagepolicy.Policies, error) {
	p := imagepolicy.Policies{Namespace: namespace, SharedNamespace: shared}
	var err error
	if shared != "" {
		p.Shared, err = list(ctx, reader, shared)
	}
	if err == nil && namespace != shared {
		p.Local, err = list(ctx, reader, namespace)
	}
	return p, err
}

func list(ctx context.Context, reader client.Reader, namespace string) ([]v1alpha1.BundleImagePolicy, error) {
	var found v1alpha1.BundleImagePolicyList
	if err := reader.List(ctx, &found, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the bundleimagepolicies of namespace %s: %w", namespace, err)
	}
	return found.Items, nil
}

// Concerned lists the objects of a namespace, "" for all, with a source that concerns accepts.
type Concerned func(ctx context.Context, namespace string, concerns func([]v1alpha1.Source) bool) []reconcile.Request

// Handler queues the objects with images that a changed policy is about, or was before the change. Shared is the shared namespace.
func Handler(shared string, find Concerned) handler.EventHandler {
	queue := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], policies ...client.Object) {
		namespace := policies[0].GetNamespace()
		if namespace == shared {
			namespace = ""
		}
		for _, request := range find(ctx, namespace, func(sources []v1alpha1.Source) bool { return concern(policies, sources) }) {
			q.Add(request)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			queue(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				queue(ctx, q, e.ObjectOld, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			queue(ctx, q, e.Object)
		},
	}
}

// concern tells whether one of the policies has a rule about an image among the sources.
func concern(policies []client.Object, sources []v1alpha1.Source) bool {
	return slices.ContainsFunc(sources, func(source v1alpha1.Source) bool {
		if source.Image == nil {
			return false
		}
		name, err := image.FullName(source.Image.Reference, source.Image.Insecure)
		return err == nil && slices.ContainsFunc(policies, func(o client.Object) bool {
			policy, ok := o.(*v1alpha1.BundleImagePolicy)
			return ok && imagepolicy.Concerns(policy, name)
		})
	})
}
