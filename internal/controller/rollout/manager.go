// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/predicates"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/rollout/approval"
	"github.com/satchel-dev/satchel/internal/controller/rollout/clock"
	"github.com/satchel-dev/satchel/internal/controller/rollout/figures"
	"github.com/satchel-dev/satchel/internal/controller/rollout/fleet"
	"github.com/satchel-dev/satchel/internal/controller/rollout/trigger"
	"github.com/satchel-dev/satchel/internal/controller/shard"
)

// FieldManager owns the BundleDeployments, revisions and statuses that this controller writes.
const FieldManager = "bundle-rollout-controller"

// Deps is what the controller works with.
type Deps struct {
	// Client reads Satchel's kinds from a cache, and writes them.
	Client client.Client
	// APIReader bypasses the cache.
	APIReader client.Reader
	// Events records what changed.
	Events events.EventRecorder
	// Metrics observes the steps; may be nil.
	Metrics *pipeline.Metrics
	// Running knows which reconciles run; may be nil.
	Running *pipeline.Running
	// Figures counts starts and decisions; may be nil.
	Figures *figures.Figures
	// Clusters lists the clusters.
	Clusters fleet.Lister
	// Shard selects the rollouts that this process reconciles.
	Shard shard.Shard
	// DecisionPause is the least time between two decisions about a rollout; a second if 0.
	DecisionPause time.Duration
	// ClustersPause is how often clusters are listed when nothing else happens; a minute if 0.
	ClustersPause time.Duration
	// Now is the clock; time.Now by default. Passed is clock.Clock.Passed.
	Now    func() time.Time
	Passed func() time.Duration
}

// Reconciler reconciles BundleRollouts.
type Reconciler struct {
	Deps
	writer  pipeline.StatusWriter
	backoff pipeline.Backoff
	turns   *pipeline.Turns
	memory  memories
	clock   clock.Clock
}

// NewReconciler returns a reconciler with the given dependencies.
func NewReconciler(deps Deps) *Reconciler {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.DecisionPause == 0 {
		deps.DecisionPause = time.Second
	}
	if deps.ClustersPause == 0 {
		deps.ClustersPause = time.Minute
	}
	deps.Events = pipeline.EventRecorder(deps.Events)
	return &Reconciler{
		Deps:   deps,
		clock:  clock.Clock{Passed: deps.Passed},
		writer: pipeline.StatusWriter{Client: deps.Client, Reader: deps.APIReader, Manager: FieldManager},
		turns:  pipeline.NewTurns(1), // decisions of a namespace one after the other
	}
}

// SetupWithManager registers the controller, running the given number of reconciles at once.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, concurrent int) error {
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}, pipeline.StatusLost())
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.BundleRollout{}, builder.WithPredicates(r.Shard.Predicate(changed))).
		Watches(&v1alpha1.BundleSource{}, handler.EnqueueRequestsFromMapFunc(trigger.Sources{Client: r.Client}.Users), builder.WithPredicates(trigger.SourceChanged())).
		Watches(&v1alpha1.BundleDeployment{}, handler.EnqueueRequestsFromMapFunc(trigger.Owner)).
		Watches(&v1alpha1.BundleApproval{}, handler.EnqueueRequestsFromMapFunc(approval.Wake)).
		WatchesRawSource(r.turns.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrent}).
		Complete(r)
}

// Reconcile makes one decision about a rollout, and carries it out.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object, err := pipeline.ReadCurrent[v1alpha1.BundleRollout](ctx, &r.backoff, r.Client, r.APIReader, request.NamespacedName)
	if err != nil || !r.Shard.Owns(object) { // another instance reconciles it
		r.turns.Drop(request.NamespacedName)
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("reading bundlerollout %s: %w", request, err)
		}
		r.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	now := r.Now()
	memory := r.memory.of(request.NamespacedName, object.UID, now, r.clock.Began(now))
	if pause := memory.decided.Add(r.DecisionPause).Sub(r.Now()); pause > 0 {
		r.turns.Drop(request.NamespacedName)
		return ctrl.Result{RequeueAfter: pause}, nil // events coalesce
	}
	done, ok := r.turns.Take(request.NamespacedName)
	if !ok {
		return ctrl.Result{}, nil // called again when the other one has ended
	}
	defer done()
	defer r.Running.Begin(request.NamespacedName, longestReconcile)()
	defer r.Metrics.Reconciled(v1alpha1.BundleRolloutKind, request.NamespacedName, time.Now())
	memory.decided = r.Now()
	bounded, cancel := context.WithTimeout(ctx, longestReconcile)
	defer cancel()
	return r.attempt(ctx, bounded, r.newState(object, memory))
}

// longestReconcile bounds one reconcile, which waits for the API server only.
const longestReconcile = 2 * time.Minute

// writeTimeout bounds writing a status after the work has ended or timed out.
const writeTimeout = 15 * time.Second

// attempt runs the steps, and says when to reconcile again.
func (r *Reconciler) attempt(ctx, bounded context.Context, s *state) (ctrl.Result, error) {
	steps, phase := r.steps(), pipeline.PhaseReconciling
	if !s.object.DeletionTimestamp.IsZero() {
		steps, phase = r.removalSteps(), pipeline.PhaseRemoving
	}
	err := pipeline.Run(bounded, steps, s, r.Metrics.Observer(v1alpha1.BundleRolloutKind, phase))
	switch {
	case ctx.Err() != nil:
		return ctrl.Result{}, nil // the process ends, or lost its lease: this is no failure of the rollout
	case s.gone:
		return ctrl.Result{}, nil
	case pipeline.IsStale(err):
		s.memory.doubt(r.Now())
		return ctrl.Result{RequeueAfter: r.backoff.Conflicted(s.key())}, nil // decided on a stale copy: nothing was carried out
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err != nil {
		s.fail(err)
	}
	if failed := r.write(ctx, s); failed != nil {
		s.memory.doubt(r.Now())
		return r.backoff.Conflict(s.key(), failed)
	}
	pipeline.LogFailure(ctx, s.before, s.object, err)
	return ctrl.Result{RequeueAfter: r.pause(s, err)}, nil
}

// pause is the time until the next decision without an event.
func (r *Reconciler) pause(s *state, err error) time.Duration {
	longest := pipeline.IntervalPause(r.ClustersPause)
	if err != nil && !failureOf(err).stalled {
		return r.backoff.Failed(s.key(), longest)
	}
	if err == nil {
		r.backoff.Succeeded(s.key())
	}
	if s.again > 0 {
		longest = min(longest, s.again)
	}
	if s.decision != nil && s.decision.Recheck > 0 {
		longest = min(longest, s.decision.Recheck)
	}
	return longest
}

// forget drops everything about a rollout that is gone.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.backoff.Forget(key)
	r.memory.forget(key)
	r.Metrics.Forget(v1alpha1.BundleRolloutKind, key)
}
