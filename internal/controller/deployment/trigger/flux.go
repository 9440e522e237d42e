// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
)

// FluxWatches watches Flux sources once the cluster serves them, which may be long
// after this controller started, or never.
type FluxWatches struct {
	Mapper
	Controller controller.Controller
	Cache      cache.Cache
	RESTMapper apimeta.RESTMapper
}

// lookForFlux is the interval of checks for kinds that are not served yet.
const lookForFlux = 30 * time.Second

// Start implements manager.Runnable.
func (w *FluxWatches) Start(ctx context.Context) error {
	missing := map[string]bool{}
	for kind := range resolve.FluxKinds {
		missing[kind] = true
	}
	ticker := time.NewTicker(lookForFlux)
	defer ticker.Stop()
	for len(missing) > 0 {
		for kind := range missing {
			if w.watch(ctx, kind) {
				delete(missing, kind)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
	return nil
}

// watch starts to watch a kind, and tells whether the cluster serves it.
func (w *FluxWatches) watch(ctx context.Context, kind string) bool {
	if _, err := w.RESTMapper.RESTMapping(sourcev1.GroupVersion.WithKind(kind).GroupKind(), sourcev1.GroupVersion.Version); err != nil {
		return false
	}
	handle := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		return w.usersOfFlux(ctx, kind, object)
	})
	err := w.Controller.Watch(source.Kind(w.Cache, client.Object(resolve.FluxKinds[kind]()), handle, fluxSourceChanged()))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Flux sources are not watched: deployments read them at their interval", "kind", kind)
	}
	return true
}

// fluxSourceChanged passes changes of a source that matter to deployments.
func fluxSourceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(resolve.FluxObject)
		after, fine := e.ObjectNew.(resolve.FluxObject)
		return !ok || !fine || !equality.Semantic.DeepEqual(before.GetArtifact(), after.GetArtifact()) ||
			!equality.Semantic.DeepEqual(conditions.Get(before, meta.ReadyCondition), conditions.Get(after, meta.ReadyCondition))
	}}
}

// usersOfFlux lists the deployments to wake when a Flux source changes.
func (r Mapper) usersOfFlux(ctx context.Context, kind string, object client.Object) []reconcile.Request {
	var deployments v1alpha1.BundleDeploymentList
	if err := r.Client.List(ctx, &deployments, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot wake the deployments of a source", "kind", kind, "source", client.ObjectKeyFromObject(object))
		return nil
	}
	var requests []reconcile.Request
	for i := range deployments.Items {
		if ref := deployments.Items[i].Spec.SourceRef; ref != nil && ref.Kind == kind && ref.Name == object.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&deployments.Items[i])})
		}
	}
	return requests
}
