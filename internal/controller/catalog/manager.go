// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/predicates"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/catalogs"
	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/controller/imagepolicies"
	"github.com/satchel-dev/satchel/internal/controller/notify"
	"github.com/satchel-dev/satchel/internal/controller/nslabel"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/shard"
	"github.com/satchel-dev/satchel/internal/controller/timeline"
	"github.com/satchel-dev/satchel/internal/controller/upstream/failure"
	"github.com/satchel-dev/satchel/internal/controller/upstream/figures"
	"github.com/satchel-dev/satchel/internal/controller/upstream/trust"
	"github.com/satchel-dev/satchel/internal/controller/upstream/waiting"
	"github.com/satchel-dev/satchel/internal/sourcefetch"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/worker/indexing"
)

// Deps is what the controller works with. Fields without a comment are those of the source controller.
type Deps struct {
	Client    client.Client
	Shard     shard.Shard
	APIReader client.Reader
	Events    events.EventRecorder
	Metrics   *pipeline.Metrics
	Running   *pipeline.Running
	Measures  *figures.Measures
	// Store holds the indexed catalogs.
	Store *catalogs.Store
	// Workers index catalogs.
	Workers indexing.Runner
	Scratch string
	// Upstreams says how upstreams are reached, and what may be fetched of them.
	Upstreams sourcefetch.Options
	// Limits bound what is indexed.
	Limits fbc.Limits
	// BaseURL is where the artifact server is reached, as in http://host:port.
	BaseURL string
	// FieldManager owns the statuses.
	FieldManager string
	// PerNamespace is how many catalogs of a namespace are fetched at once; 0 for any number.
	PerNamespace int
	Concurrent   int
	Timeline     *timeline.Guard
	TrustEvery   time.Duration
	// SharedNamespace has the BundleImagePolicies for all namespaces; "" for none.
	SharedNamespace string
}

// Reconciler reconciles BundleCatalogs.
type Reconciler struct {
	Deps
	adapters *sourcefetch.Factory
	writer   pipeline.StatusWriter
	backoff  pipeline.Backoff
	demands  *pipeline.Demands
	waiting  waiting.Waiting
	turns    *pipeline.Turns
	pace     notify.Pace
	labels   nslabel.Reader
	refused  refusals
}

// NewReconciler returns a reconciler with the given dependencies.
func NewReconciler(deps Deps) *Reconciler {
	deps.Events = pipeline.EventRecorder(deps.Events)
	return &Reconciler{
		Deps:     deps,
		adapters: sourcefetch.NewFactory(deps.Upstreams, deps.Measures.Observe),
		writer:   pipeline.StatusWriter{Client: deps.Client, Reader: deps.APIReader, Manager: deps.FieldManager},
		turns:    pipeline.NewTurns(deps.PerNamespace).Within(deps.Concurrent),
		demands:  pipeline.NewDemands(),
	}
}

// SetupWithManager registers the controller, running the given number of reconciles at once.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, concurrent int) error {
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}, pipeline.StatusLost())
	r.Timeline.OnRewind(r.waiting.Clear)
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.BundleCatalog{}, builder.WithPredicates(r.Shard.Predicate(changed))).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.catalogsIn), builder.WithPredicates(pipeline.CreatedOrDeleted())).
		Watches(&v1alpha1.BundleImagePolicy{}, imagepolicies.Handler(r.SharedNamespace, r.catalogsWith)).
		WatchesRawSource(r.turns.Source()).
		WatchesRawSource(r.Timeline.Source(r.APIReader, func() client.ObjectList { return &v1alpha1.BundleCatalogList{} })).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrent}).
		Complete(r)
}

// catalogsIn lists the catalogs of a namespace that are affected when its label for required signatures is set or removed.
func (r *Reconciler) catalogsIn(ctx context.Context, namespace client.Object) []reconcile.Request {
	var list v1alpha1.BundleCatalogList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot queue catalogs after a change of the labels of their namespace: each one is reconciled at its interval", "namespace", namespace.GetName())
		return nil
	}
	r.labels.Forget(namespace.GetName())
	var requests []reconcile.Request
	for i := range list.Items {
		object := &list.Items[i]
		if !effective.DemandsSignature(effective.CatalogSource(&object.Spec)) && r.Shard.Owns(object) {
			r.waiting.Forget(client.ObjectKeyFromObject(object))
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
		}
	}
	return requests
}

// signatureRequired says that the namespace requires signatures, and that the catalog does not.
func signatureRequired(namespace string) error {
	return failure.SignatureRequired(fmt.Errorf("namespace %s has the label %s=%s, and no signature is required of the catalog: set verify on its source",
		namespace, v1alpha1.RequireSignaturesLabel, v1alpha1.RequireSignatures))
}

// Reconcile fetches, indexes and publishes one catalog.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object, err := pipeline.ReadCurrent[v1alpha1.BundleCatalog](ctx, &r.backoff, r.cached(), r.APIReader, request.NamespacedName)
	if err != nil {
		r.turns.Drop(request.NamespacedName)
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, fmt.Errorf("reading bundlecatalog %s: %w", request, err)
		}
		return ctrl.Result{}, r.drop(request.NamespacedName)
	}
	if handled, result, err := r.withoutTurn(ctx, object); handled {
		r.turns.Drop(request.NamespacedName)
		return result, err
	}
	done, ok := r.turns.Take(request.NamespacedName)
	if !ok {
		return ctrl.Result{}, nil // called again when others of the namespace have ended
	}
	defer done()
	running := types.NamespacedName{Namespace: request.Namespace, Name: "bundlecatalog/" + request.Name} // a source may have the same name
	defer r.Running.Begin(running, effective.SourceTimeout(effective.CatalogSource(&object.Spec))+writeTimeout)()
	began := time.Now()
	defer r.Metrics.Reconciled(v1alpha1.BundleCatalogKind, request.NamespacedName, began)
	defer func() { r.demands.Took(request.NamespacedName, time.Since(began), pipeline.MostCharged, time.Now()) }()
	return r.attempt(ctx, object)
}

// cached reads catalogs from the cache, unless that may still hold objects from before a restore.
func (r *Reconciler) cached() client.Reader {
	if r.Timeline.Unsettled() {
		return r.APIReader
	}
	return r.Client
}

// withoutTurn handles a catalog that needs no request to its upstream now.
func (r *Reconciler) withoutTurn(ctx context.Context, object *v1alpha1.BundleCatalog) (handled bool, _ ctrl.Result, _ error) {
	switch {
	case !object.DeletionTimestamp.IsZero(): // the contents go when the object is gone
		return true, ctrl.Result{}, nil
	case !r.Shard.Owns(object):
		result, err := r.leave(object)
		return true, result, err
	}
	pause := r.waiting.Pause(ctx, r.APIReader, object, time.Now())
	if object.Spec.Suspend && pause == 0 {
		result, err := r.suspended(ctx, r.newState(object.DeepCopy()))
		return true, result, err
	}
	if pause == 0 {
		pause = r.demands.PauseOf(object, object.Status.ObservedGeneration, object.Status.LastHandledReconcileAt, time.Now())
	}
	return pause > 0, ctrl.Result{RequeueAfter: pause}, nil
}

// writeTimeout bounds writing a status after the work has ended or timed out.
const writeTimeout = 15 * time.Second

// attempt runs all steps for a catalog, and writes the status.
func (r *Reconciler) attempt(ctx context.Context, before *v1alpha1.BundleCatalog) (ctrl.Result, error) {
	s := r.newState(before.DeepCopy())
	defer s.adapters.Close()
	bounded, cancel := context.WithTimeout(ctx, effective.SourceTimeout(s.spec))
	defer cancel()
	err := pipeline.Run(bounded, r.steps(), s, r.Metrics.Observer(v1alpha1.BundleCatalogKind, pipeline.PhaseReconciling))
	if ctx.Err() != nil {
		return ctrl.Result{}, nil // the process ends, or lost its lease: this is no failure of the catalog
	}
	if pipeline.IsStale(err) {
		return ctrl.Result{RequeueAfter: r.backoff.Conflicted(s.key)}, nil // the object was changed meanwhile
	}
	writing, done := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer done()
	stored := s.object.DeepCopy()
	r.updateStatus(s, err)
	if failed := r.writer.Write(writing, stored, s.object); failed != nil {
		return r.backoff.Conflict(s.key, failed)
	}
	r.tell(ctx, s, before, err)
	return ctrl.Result{RequeueAfter: r.pause(s, err)}, nil
}

// pause is the time until the next attempt or poll.
func (r *Reconciler) pause(s *state, err error) time.Duration {
	interval := effective.SourceInterval(s.spec)
	if err == nil {
		r.backoff.Succeeded(s.key)
		return r.untilTrustCheck(s, pipeline.IntervalPause(interval))
	}
	failed, pause := failure.Of(err), pipeline.IntervalPause(interval)
	if !failed.Stalled {
		pause = max(r.backoff.Failed(s.key, interval), pipeline.RequestedPause(failed.Wait))
	}
	if len(s.secrets.Seen) > 0 && waiting.FixableBySecret(err) {
		return r.waiting.Keep(s.object, s.secrets.Seen, time.Now(), pause, waiting.LookEvery)
	}
	return r.untilTrustCheck(s, pause)
}

// untilTrustCheck is the pause until the Secrets with the trust are checked, since their changes cause no event; the given
// pause if no signature is required.
func (r *Reconciler) untilTrustCheck(s *state, pause time.Duration) time.Duration {
	if seen := trust.Seen(s.spec.Sources, s.secrets, s.adapters); len(seen) > 0 {
		return r.waiting.Keep(s.object, seen, time.Now(), pause, cmp.Or(r.TrustEvery, time.Minute))
	}
	r.waiting.Forget(s.key)
	return pause
}

// suspended keeps the contents while they are in storage and trusted, and does nothing else.
func (r *Reconciler) suspended(ctx context.Context, s *state) (ctrl.Result, error) {
	defer s.adapters.Close()
	if _, err := r.policies(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if _, err := r.check(ctx, s); err != nil {
		ctrl.LoggerFrom(ctx).Info("cannot check the contents of a suspended catalog", "error", err.Error())
	}
	if _, err := r.accept(ctx, s); err == nil {
		if _, err := r.requireSignatures(ctx, s); err != nil && s.unsigned == nil {
			return ctrl.Result{}, err
		}
		if _, err := r.denial(ctx, s); err != nil && s.denied == nil {
			return ctrl.Result{}, err
		}
		if _, err := r.retrust(ctx, s); err != nil {
			return r.backoff.Conflict(s.key, err)
		}
	}
	before := s.object.DeepCopy()
	r.markSuspended(s)
	if err := r.writer.Write(ctx, before, s.object); err != nil {
		return r.backoff.Conflict(s.key, err)
	}
	if !s.demandsSignature() {
		r.waiting.Forget(s.key)
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: r.untilTrustCheck(s, pipeline.IntervalPause(effective.SourceInterval(s.spec)))}, nil
}

// leavePause is the interval of checks whether another shard serves a catalog.
const leavePause = time.Minute

// leave releases a catalog that moved to another shard. It is served until that shard serves it.
func (r *Reconciler) leave(object *v1alpha1.BundleCatalog) (ctrl.Result, error) {
	if r.advertised(object) {
		return ctrl.Result{RequeueAfter: leavePause}, nil
	}
	return ctrl.Result{}, r.drop(client.ObjectKeyFromObject(object))
}

// advertised tells whether the status of a catalog names this server.
func (r *Reconciler) advertised(object *v1alpha1.BundleCatalog) bool {
	return object.Status.URLs != nil && object.Status.URLs.Base == r.baseOf(client.ObjectKeyFromObject(object))
}

// baseOf is the URL below which a catalog is served.
func (r *Reconciler) baseOf(key types.NamespacedName) string {
	return r.BaseURL + catalogs.Prefix + key.Namespace + "/" + key.Name
}

// drop removes everything that is kept for a catalog.
func (r *Reconciler) drop(key types.NamespacedName) error {
	r.backoff.Succeeded(key)
	r.waiting.Forget(key)
	r.refused.forget(key)
	r.demands.Drop(key, time.Now())
	r.Metrics.Forget(v1alpha1.BundleCatalogKind, key)
	return r.Store.Remove(key)
}

// Sweep removes the contents of catalogs that were deleted, or moved to another shard, while no controller ran. The leader runs
// it once, when the caches are filled.
func (r *Reconciler) Sweep(ctx context.Context) error {
	var failures []error
	for _, key := range r.Store.Catalogs() {
		var object v1alpha1.BundleCatalog
		err := r.APIReader.Get(ctx, key, &object)
		if apierrors.IsNotFound(err) || err == nil && !r.Shard.Owns(&object) && !r.advertised(&object) {
			err = r.Store.Remove(key)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("sweeping catalog %s: %w", key, err))
		}
	}
	return errors.Join(failures...)
}
