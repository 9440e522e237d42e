// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/predicates"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/controller/imagepolicies"
	"github.com/satchel-dev/satchel/internal/controller/notify"
	"github.com/satchel-dev/satchel/internal/controller/nslabel"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/shard"
	"github.com/satchel-dev/satchel/internal/controller/sourceusers"
	"github.com/satchel-dev/satchel/internal/controller/timeline"
	"github.com/satchel-dev/satchel/internal/controller/upstream/failure"
	"github.com/satchel-dev/satchel/internal/controller/upstream/figures"
	"github.com/satchel-dev/satchel/internal/controller/upstream/trust"
	"github.com/satchel-dev/satchel/internal/controller/upstream/waiting"
	"github.com/satchel-dev/satchel/internal/sourcefetch"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// FieldManager owns the statuses that this controller writes.
const FieldManager = "bundle-source-controller"

// Deps is what the controller works with.
type Deps struct {
	// Client reads BundleSources and BundleDeployments from a cache.
	Client client.Client
	// Shard selects the sources that this process reconciles.
	Shard shard.Shard
	// APIReader bypasses the cache: for ConfigMaps, Secrets and ServiceAccounts by name, and
	// a source after a failed write.
	APIReader client.Reader
	// Events records what changed.
	Events events.EventRecorder
	// Metrics observes the steps; may be nil.
	Metrics *pipeline.Metrics
	// Running knows which reconciles run; may be nil.
	Running *pipeline.Running
	// Measures observes upstreams and storage; may be nil.
	Measures *figures.Measures
	// Store holds the artifacts.
	Store *storage.Store
	// Scratch is a folder for downloads, on a volume of its own or the store's.
	Scratch string
	// Upstreams says how upstreams are reached, and what may be fetched.
	Upstreams sourcefetch.Options
	// Retention says which superseded artifacts are kept.
	Retention Retention
	// PerNamespace is how many sources of a namespace are fetched at once; 0 for any
	// number.
	PerNamespace int
	// Concurrent is how many sources are reconciled at once; 0 if that is not known.
	Concurrent int
	// Timeline notices that the API server's storage went back in time; may be nil.
	Timeline *timeline.Guard
	// SharedNamespace has the BundleImagePolicies for all namespaces; "" for none.
	SharedNamespace string
	// TrustEvery is how often the Secrets with the trust of sources are checked; 0 for each minute.
	TrustEvery time.Duration
}

// Retention says which superseded artifacts of a source are kept although no deployment
// uses them.
type Retention struct {
	// Records is how many artifacts a source keeps at least.
	Records int
	// TTL is how long an artifact is kept at least, so that clients that have read its URL
	// can still download it.
	TTL time.Duration
}

// Reconciler reconciles BundleSources.
type Reconciler struct {
	Deps
	adapters *sourcefetch.Factory
	writer   pipeline.StatusWriter
	backoff  pipeline.Backoff
	// demands limits the rate of edits and reconcile requests.
	demands *pipeline.Demands
	waiting waiting.Waiting
	turns   *pipeline.Turns
	pace    notify.Pace
	// uploads are the sources that received an upload.
	uploads chan event.GenericEvent
	labels  nslabel.Reader // of namespaces
}

// NewReconciler returns a reconciler with the given dependencies.
func NewReconciler(deps Deps) *Reconciler {
	deps.Events = pipeline.EventRecorder(deps.Events)
	return &Reconciler{
		Deps:     deps,
		adapters: sourcefetch.NewFactory(deps.Upstreams, deps.Measures.Observe),
		writer:   pipeline.StatusWriter{Client: deps.Client, Reader: deps.APIReader, Manager: FieldManager},
		turns:    pipeline.NewTurns(deps.PerNamespace).Within(deps.Concurrent),
		demands:  pipeline.NewDemands(),
		uploads:  make(chan event.GenericEvent),
	}
}

// SetupWithManager registers the controller, running the given number of
// reconciles at once.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, concurrent int) error {
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}, pipeline.StatusLost())
	r.Timeline.OnRewind(r.waiting.Clear)
	if err := sourceusers.Index(mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.BundleSource{}, builder.WithPredicates(r.Shard.Predicate(changed))).
		WatchesMetadata(namespaces(), handler.EnqueueRequestsFromMapFunc(r.sourcesIn), builder.WithPredicates(pipeline.CreatedOrDeleted())).
		Watches(&v1alpha1.BundleImagePolicy{}, imagepolicies.Handler(r.SharedNamespace, r.sourcesWith)).
		WatchesRawSource(r.turns.Source()).
		WatchesRawSource(source.Channel(r.uploads, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(r.Timeline.Source(r.APIReader, func() client.ObjectList { return &v1alpha1.BundleSourceList{} })).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrent}).
		Complete(r)
}

// Reconcile fetches and publishes one source.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object, err := pipeline.ReadCurrent[v1alpha1.BundleSource](ctx, &r.backoff, r.cached(), r.APIReader, request.NamespacedName)
	if err != nil {
		r.turns.Drop(request.NamespacedName)
		return ctrl.Result{}, r.forget(ctx, request, err)
	}
	if handled, result, err := r.withoutTurn(ctx, object); handled {
		r.turns.Drop(request.NamespacedName) // it may have waited for one until now
		return result, err
	}
	done, ok := r.turns.Take(request.NamespacedName)
	if !ok {
		return ctrl.Result{}, nil // called again when others of the namespace have ended
	}
	defer done()
	defer r.Running.Begin(request.NamespacedName, effective.SourceTimeout(&object.Spec)+writeTimeout)()
	began := time.Now()
	defer r.Metrics.Reconciled(v1alpha1.BundleSourceKind, request.NamespacedName, began)
	defer func() { r.demands.Took(request.NamespacedName, time.Since(began), pipeline.MostCharged, time.Now()) }()
	return r.attempt(ctx, object)
}

// cached reads sources from the cache, unless that may still hold objects from before a restore.
func (r *Reconciler) cached() client.Reader {
	if r.Timeline.Unsettled() {
		return r.APIReader
	}
	return r.Client
}

// withoutTurn handles a source that needs no request to its upstream now.
func (r *Reconciler) withoutTurn(ctx context.Context, object *v1alpha1.BundleSource) (handled bool, _ ctrl.Result, _ error) {
	switch {
	case !object.DeletionTimestamp.IsZero(): // the artifacts go when the object is gone
		return true, ctrl.Result{}, nil
	case !r.Shard.Owns(object):
		result, err := r.leave(ctx, object)
		return true, result, err
	case object.Spec.Suspend:
		if pause := r.waiting.Pause(ctx, r.APIReader, object, time.Now()); pause > 0 {
			return true, ctrl.Result{RequeueAfter: pause}, nil
		}
		result, err := r.suspended(ctx, r.newState(object.DeepCopy()))
		return true, result, err
	}
	pause := r.waiting.Pause(ctx, r.APIReader, object, time.Now())
	if pause == 0 {
		pause = r.demands.PauseOf(object, object.Status.ObservedGeneration, object.Status.LastHandledReconcileAt, time.Now())
	}
	return pause > 0, ctrl.Result{RequeueAfter: pause}, nil
}

// attempt runs all steps for a source.
func (r *Reconciler) attempt(ctx context.Context, object *v1alpha1.BundleSource) (ctrl.Result, error) {
	s := r.newState(object.DeepCopy())
	defer s.adapters.Close()
	bounded, cancel := context.WithTimeout(ctx, effective.SourceTimeout(&object.Spec))
	defer cancel()
	err := pipeline.Run(bounded, r.steps(), s, r.Metrics.Observer(v1alpha1.BundleSourceKind, pipeline.PhaseReconciling))
	if ctx.Err() != nil {
		return ctrl.Result{}, nil // the process ends, or lost its lease: this is no failure of the source
	}
	return r.finish(context.WithoutCancel(ctx), s, object, err)
}

// finish writes the status and returns when to reconcile again.
func (r *Reconciler) finish(ctx context.Context, s *state, before *v1alpha1.BundleSource, err error) (ctrl.Result, error) {
	if pipeline.IsStale(err) {
		return ctrl.Result{RequeueAfter: r.backoff.Conflicted(client.ObjectKeyFromObject(s.object))}, nil // the object was changed meanwhile
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	stored := s.object.DeepCopy()
	if failed := r.keepExternal(ctx, s); err == nil {
		err = failed
	}
	updateStatus(s, err)
	if failure := r.writer.Write(ctx, stored, s.object); failure != nil {
		return r.backoff.Conflict(client.ObjectKeyFromObject(s.object), failure)
	}
	r.tellLost(s)
	r.tell(ctx, before, s.object, err)
	return ctrl.Result{RequeueAfter: r.pause(s, err)}, nil
}

// writeTimeout bounds writing a status after the work has ended or timed out.
const writeTimeout = 15 * time.Second

// pause is the time until the next attempt or poll.
func (r *Reconciler) pause(s *state, err error) time.Duration {
	interval, key := effective.SourceInterval(&s.object.Spec), client.ObjectKeyFromObject(s.object)
	if err == nil {
		r.backoff.Succeeded(key)
		return r.untilTrustCheck(s, pipeline.IntervalPause(interval))
	}
	failed, pause := failure.Of(err), pipeline.IntervalPause(interval)
	if !failed.Stalled {
		pause = max(r.backoff.Failed(key, interval), pipeline.RequestedPause(failed.Wait))
	}
	if len(s.secrets.Seen) > 0 && waiting.FixableBySecret(err) {
		return r.waiting.Keep(s.object, s.secrets.Seen, time.Now(), pause, waiting.LookEvery)
	}
	return r.untilTrustCheck(s, pause)
}

// untilTrustCheck is the pause until the Secrets with the trust of a source are checked, since their changes cause no
// event; the given pause if the source requires no signature.
func (r *Reconciler) untilTrustCheck(s *state, pause time.Duration) time.Duration {
	if seen := trust.Seen(s.object.Spec.Sources, s.secrets, s.adapters); len(seen) > 0 {
		return r.waiting.Keep(s.object, seen, time.Now(), pause, r.trustInterval())
	}
	r.waiting.Forget(client.ObjectKeyFromObject(s.object))
	return pause
}

// trustInterval is how often Secrets with trust are checked.
func (r *Reconciler) trustInterval() time.Duration { return cmp.Or(r.TrustEvery, defaultTrustInterval) }

// suspended keeps the published artifact while it is in storage, and does nothing else.
func (r *Reconciler) suspended(ctx context.Context, s *state) (ctrl.Result, error) {
	if _, err := r.policies(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if _, err := r.check(ctx, s); err != nil {
		ctrl.LoggerFrom(ctx).Info("cannot check the artifact of a suspended source", "error", err.Error())
	}
	if _, err := r.requireSignatures(ctx, s); err != nil && s.unsigned == nil {
		return ctrl.Result{}, err
	}
	if _, err := r.denial(ctx, s); err != nil && s.denied == nil {
		return r.backoff.Conflict(client.ObjectKeyFromObject(s.object), err)
	}
	if _, err := r.retrust(ctx, s); err != nil {
		return r.backoff.Conflict(client.ObjectKeyFromObject(s.object), err)
	}
	before := s.object.DeepCopy()
	if err := r.keepExternal(ctx, s); err != nil {
		ctrl.LoggerFrom(ctx).Info("cannot keep the externalartifact of a suspended source", "error", err.Error())
	}
	markSuspended(s)
	if err := r.writer.Write(ctx, before, s.object); err != nil {
		return r.backoff.Conflict(client.ObjectKeyFromObject(s.object), err)
	}
	r.tellLost(s)
	if !s.demandsSignature() {
		r.waiting.Forget(client.ObjectKeyFromObject(s.object))
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: r.untilTrustCheck(s, pipeline.IntervalPause(effective.SourceInterval(&s.object.Spec)))}, nil
}

// leave releases a source that moved to another shard. Its artifacts are served until
// that shard advertises its own.
func (r *Reconciler) leave(ctx context.Context, object *v1alpha1.BundleSource) (ctrl.Result, error) {
	if r.advertised(object) {
		return ctrl.Result{RequeueAfter: leavePause}, nil
	}
	return ctrl.Result{}, r.drop(ctx, client.ObjectKeyFromObject(object))
}

// leavePause is the interval of checks whether another shard advertises a source.
const leavePause = time.Minute

// advertised tells whether a source names an artifact that is served here.
func (r *Reconciler) advertised(object *v1alpha1.BundleSource) bool {
	a := object.Status.Artifact
	return a != nil && r.Store.Adopt(*a).URL == a.URL
}

// forget removes the artifacts of a deleted source. Deployments keep the applied
// artifacts in a cache of their own.
func (r *Reconciler) forget(ctx context.Context, request ctrl.Request, err error) error {
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading bundlesource %s: %w", request, err)
	}
	return r.drop(ctx, request.NamespacedName)
}

// drop removes everything that is kept for a source.
func (r *Reconciler) drop(ctx context.Context, key client.ObjectKey) error {
	r.backoff.Succeeded(key)
	r.waiting.Forget(key)
	r.demands.Drop(key, time.Now())
	r.Metrics.Forget(v1alpha1.BundleSourceKind, key)
	return r.Store.Remove(ctx, artifact.SourceOwner(key.Namespace, key.Name))
}
