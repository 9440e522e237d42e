// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
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

// FluxWatches watches the kinds of Flux sources that deployments refer to, once the cluster serves them, which may be long
// after this controller started. While no deployment refers to one, it asks for nothing.
type FluxWatches struct {
	Mapper
	Controller controller.Controller
	Cache      cache.Cache
	RESTMapper apimeta.RESTMapper

	mu      sync.Mutex
	wanted  map[string]bool // kinds that a deployment refers to, and that are not watched
	watched map[string]bool
	more    chan struct{} // signals that wanted grew
}

// NewFluxWatches returns watches of nothing.
func NewFluxWatches() *FluxWatches {
	return &FluxWatches{wanted: map[string]bool{}, watched: map[string]bool{}, more: make(chan struct{}, 1)}
}

// lookForFlux is the interval of checks for kinds that are not served yet.
const lookForFlux = 30 * time.Second

// Want has the kind of the source of a deployment watched, if it is one of Flux.
func (w *FluxWatches) Want(d *v1alpha1.BundleDeployment) {
	ref := d.Spec.SourceRef
	if ref == nil || resolve.FluxKinds[ref.Kind] == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched[ref.Kind] || w.wanted[ref.Kind] {
		return
	}
	w.wanted[ref.Kind] = true
	select {
	case w.more <- struct{}{}:
	default: // it is signaled already
	}
}

// Start implements manager.Runnable.
func (w *FluxWatches) Start(ctx context.Context) error {
	ticker := time.NewTicker(lookForFlux)
	defer ticker.Stop()
	for {
		again := ticker.C
		if !w.watchWanted(ctx) {
			again = nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.more:
		case <-again:
		}
	}
}

// watchWanted watches the wanted kinds that are served, and tells whether there are others.
func (w *FluxWatches) watchWanted(ctx context.Context) bool {
	w.mu.Lock()
	wanted := slices.Collect(maps.Keys(w.wanted))
	w.mu.Unlock()
	for _, kind := range wanted {
		if !w.watch(ctx, kind) {
			continue
		}
		w.mu.Lock()
		delete(w.wanted, kind)
		w.watched[kind] = true
		w.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.wanted) > 0
}

// watch starts to watch a kind, and tells whether the cluster serves it.
func (w *FluxWatches) watch(ctx context.Context, kind string) bool {
	if _, err := w.RESTMapper.RESTMapping(sourcev1.GroupVersion.WithKind(kind).GroupKind(), sourcev1.GroupVersion.Version); err != nil {
		return false
	}
	handle := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		return w.UsersOfFlux(ctx, kind, object)
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

// FluxField is the name of the index of deployments by the kind and the name of their source of Flux.
const FluxField = "satchel.dev/flux-source"

// IndexFlux indexes deployments in a cache.
func IndexFlux(indexer client.FieldIndexer) error {
	err := indexer.IndexField(context.Background(), &v1alpha1.BundleDeployment{}, FluxField, func(object client.Object) []string {
		d, ok := object.(*v1alpha1.BundleDeployment)
		if !ok || d.Spec.SourceRef == nil || resolve.FluxKinds[d.Spec.SourceRef.Kind] == nil {
			return nil
		}
		return []string{fluxSource(d.Spec.SourceRef.Kind, d.Spec.SourceRef.Name)}
	})
	if err != nil {
		return fmt.Errorf("indexing bundledeployments: %w", err)
	}
	return nil
}

// fluxSource is the value of a source in the index.
func fluxSource(kind, name string) string { return kind + "/" + name }

// UsersOfFlux lists the deployments to wake when a Flux source changes. The client has to be a cache with the index.
func (r Mapper) UsersOfFlux(ctx context.Context, kind string, object client.Object) []reconcile.Request {
	var deployments v1alpha1.BundleDeploymentList
	of := client.MatchingFields{FluxField: fluxSource(kind, object.GetName())}
	if err := r.Client.List(ctx, &deployments, client.InNamespace(object.GetNamespace()), of, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot wake the deployments of a source", "kind", kind, "source", client.ObjectKeyFromObject(object))
		return nil
	}
	var requests []reconcile.Request
	for i := range deployments.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&deployments.Items[i])})
	}
	return requests
}
