// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fluxcd/pkg/runtime/predicates"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/storageversion"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/artifact/packages"
	"github.com/satchel-dev/satchel/internal/controller/budget"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/catalogs"
	"github.com/satchel-dev/satchel/internal/controller/deployment/decide"
	"github.com/satchel-dev/satchel/internal/controller/deployment/deliver"
	"github.com/satchel-dev/satchel/internal/controller/deployment/dependency"
	"github.com/satchel-dev/satchel/internal/controller/deployment/figures"
	"github.com/satchel-dev/satchel/internal/controller/deployment/handover"
	"github.com/satchel-dev/satchel/internal/controller/deployment/healthchecks"
	"github.com/satchel-dev/satchel/internal/controller/deployment/hooks"
	"github.com/satchel-dev/satchel/internal/controller/deployment/render"
	"github.com/satchel-dev/satchel/internal/controller/deployment/resolve"
	"github.com/satchel-dev/satchel/internal/controller/deployment/scrub"
	"github.com/satchel-dev/satchel/internal/controller/deployment/settle"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/deployment/trigger"
	"github.com/satchel-dev/satchel/internal/controller/deployment/waiting"
	"github.com/satchel-dev/satchel/internal/controller/keyring"
	"github.com/satchel-dev/satchel/internal/controller/nslabel"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/shard"
	"github.com/satchel-dev/satchel/internal/controller/sourceusers"
	"github.com/satchel-dev/satchel/internal/controller/timeline"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/expression"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/spec/planning"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// FieldManager owns the statuses, finalizers and inline sources that this controller
// writes. Each deployment has a field manager of its own for the objects of its bundle.
const FieldManager = "bundle-deployment-controller"

// Deps is what the controller works with.
type Deps struct {
	// Client reads BundleDeployments and BundleSources from a cache, and writes them; it never touches an object of a bundle.
	Client client.Client
	// Shard selects the deployments that this process reconciles.
	Shard shard.Shard
	// APIReader bypasses the cache: for namespaces by name, all deployments once at the start, and a deployment after a failed write.
	APIReader client.Reader
	// Events records what changed.
	Events events.EventRecorder
	// Metrics observes the steps; may be nil.
	Metrics *pipeline.Metrics
	// Running knows which reconciles run; may be nil.
	Running *pipeline.Running
	// Work counts what is done to objects; may be nil.
	Work *figures.Work
	// Expiry shows when certificates end; may be nil.
	Expiry *figures.Expiry
	// Holds shows which prunes are held; may be nil.
	Holds *figures.Holds
	// Tenants holds the clients that impersonate ServiceAccounts.
	Tenants *tenant.Pool
	// Remotes holds the clients of other clusters.
	Remotes *tenant.Remotes
	// OwnCluster permits kubeconfigs that lead to the cluster of the controller itself.
	OwnCluster bool
	// Concurrent is how many deployments to this cluster are reconciled at once, and PerNamespace how many of one
	// namespace; any number if 0.
	Concurrent, PerNamespace int
	// Remotely is how many deployments to other clusters are reconciled at once, at most half of them of one namespace; any number if 0.
	Remotely int
	// RemoteTurn is how long one turn of a deployment to another cluster may take; 2 min if 0.
	RemoteTurn time.Duration
	// AbandonAfter is how long a removal may fail without its ServiceAccount before it is abandoned; abandon.Default if 0,
	// for ever if negative.
	AbandonAfter time.Duration
	// Packages reads what BundleCatalogs say about packages; nil without spec.catalog.
	Packages *packages.Reader
	// SharedCatalogs is the namespace with BundleCatalogs for all namespaces; "" for none.
	SharedCatalogs string
	// Artifacts loads what sources publish.
	Artifacts *loader.Loader
	// Workers convert bundles and judge the upgrades of CRDs.
	Workers jobs.Runner
	// Snapshots keeps the objects that each deployment applied last.
	Snapshots *lastapplied.Snapshots
	// Manifests bound what a bundle may contain; zero fields have their defaults.
	Manifests convert.Limits
	// Watches configures how tenants' objects are watched; not at all when the Limit is 0. The controller sets Wake and Exists.
	Watches drift.Options
	// InventoryLimit bounds the size of the inventory in the status of a deployment; by default, what etcd leaves for it.
	InventoryLimit inventory.Limit
	// Keys of the installation prove what was approved, and protect the keys of hashes.
	Keys keyring.Ring
	// Entropy is the source of randomness for keys; that of the operating system by default.
	Entropy io.Reader
	// Timeline notices that the API server's storage went back in time; may be nil.
	Timeline *timeline.Guard
	// Now is the clock; time.Now by default.
	Now func() time.Time
}

// Reconciler reconciles BundleDeployments.
type Reconciler struct {
	Deps
	writer  pipeline.StatusWriter
	backoff pipeline.Backoff
	// demands limits the rate of edits and reconcile requests.
	demands     *pipeline.Demands
	memory      stage.Memory
	renderer    *render.Renderer
	migrations  *storageversion.Migrations
	kinds       *waiting.Kinds
	localTurns  *pipeline.Turns // of deployments to this cluster
	remoteTurns *pipeline.Turns // of deployments to other clusters
	handover    handover.Index  // objects that deployments want of one another
	progress    budget.Progress // of turns of deployments to other clusters, and dry runs that need not be repeated
	watches     *drift.Hub
	labels      nslabel.Reader
	names       *drift.Names // watches the Secrets and ConfigMaps that conversions need
	scrubs      scrub.Memory
	follower    *catalogs.Follower // wakes deployments when catalogs change
	catalogs    catalogs.Stage
	inventories inventory.Recent // the large ones that were read or written last
	recent      snapshot.Recent  // the snapshots from which drift was corrected last
	waker       *trigger.Waker
	flux        *trigger.FluxWatches

	resolve resolve.Stage
	render  render.Stage
	decide  decide.Stage
	hooks   hooks.Runner
	deliver deliver.Stage
	settle  settle.Stage
}

// NewReconciler returns a reconciler with the given dependencies.
func NewReconciler(deps Deps) *Reconciler {
	if deps.Entropy == nil {
		deps.Entropy = rand.Reader
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	deps.Events = pipeline.EventRecorder(deps.Events)
	r := &Reconciler{
		Deps: deps, migrations: &storageversion.Migrations{Now: deps.Now}, waker: &trigger.Waker{}, flux: trigger.NewFluxWatches(),
		writer:      pipeline.StatusWriter{Client: deps.Client, Reader: deps.APIReader, Manager: FieldManager, Lean: stage.Lean},
		localTurns:  pipeline.NewTurns(deps.PerNamespace).Within(deps.Concurrent),
		remoteTurns: pipeline.NewTurns(pipeline.TurnShare(deps.Remotely, deps.Remotely)).Within(deps.Remotely),
		demands:     pipeline.NewDemands(),
		kinds:       waiting.NewKinds(),
	}
	again := func(key types.NamespacedName) { r.waker.Wake(key, 0) }
	r.renderer = render.New(deps.Workers, deps.Manifests, deps.Remotely, again)
	watches := deps.Watches
	watches.Wake, watches.Exists = r.waker.Wake, r.accountExists
	if r.names = drift.NewNames(watches); watches.Limit > 0 {
		r.watches = drift.New(watches)
	}
	r.follower = &catalogs.Follower{Reader: deps.Client, Packages: deps.Packages, Shared: deps.SharedCatalogs, Wake: r.waker.Wake}
	r.connect()
	return r
}

// SetupWithManager registers the controller, running the given number of reconciles at once.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, concurrent int) error {
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}, trigger.StatusLost(), trigger.AbandonDemanded())
	if err := approval.Index(mgr); err != nil {
		return fmt.Errorf("indexing bundleapprovals: %w", err)
	}
	if err := errors.Join(sourceusers.Index(mgr), dependency.Index(mgr), trigger.IndexFlux(mgr.GetFieldIndexer())); err != nil {
		return err
	}
	changes := trigger.Mapper{Client: r.Client, Packages: &r.decide.Awaited, Dependencies: &r.resolve.Dependencies, Blocked: &r.decide.Blocked}
	running, err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.BundleDeployment{}, builder.WithPredicates(r.renderer.Unwanted(), r.Shard.Predicate(changed))).
		Watches(&v1alpha1.BundleSource{}, handler.EnqueueRequestsFromMapFunc(changes.UsersOf), builder.WithPredicates(trigger.SourceChanged())).
		Watches(&v1alpha1.BundleDeployment{}, handler.EnqueueRequestsFromMapFunc(changes.WaitingFor), builder.WithPredicates(trigger.PackageChanged())).
		Watches(&v1alpha1.BundleDeployment{}, handler.EnqueueRequestsFromMapFunc(changes.BlockedBy), builder.WithPredicates(trigger.RequirementsChanged())).
		Watches(&v1alpha1.BundleDeployment{}, handler.EnqueueRequestsFromMapFunc(changes.Dependents)).
		Watches(&v1alpha1.BundleDeployment{}, handler.EnqueueRequestsFromMapFunc(changes.Downstream), builder.WithPredicates(trigger.DependenciesChanged())).
		Watches(&v1alpha1.BundleApproval{}, handler.EnqueueRequestsFromMapFunc(approval.Wake), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(r.localTurns.Source()).
		WatchesRawSource(r.renderer.Source()).
		WatchesRawSource(r.remoteTurns.Source()).
		WatchesRawSource(r.kinds.Source()).
		WatchesRawSource(r.waker.Source()).
		WatchesRawSource(r.Timeline.Source(r.APIReader, func() client.ObjectList { return &v1alpha1.BundleDeploymentList{} })).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrent}).
		Build(r)
	if err != nil {
		return err
	}
	r.Timeline.OnRewind(r.rewound)
	if err := r.follower.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("following bundlecatalogs: %w", err)
	}
	if err := mgr.Add(r.kinds); err != nil {
		return err
	}
	if err := mgr.Add(r.names); err != nil {
		return err
	}
	if r.watches != nil {
		if err := mgr.Add(r.watches); err != nil {
			return err
		}
	}
	r.flux.Mapper = changes
	r.flux.Controller = running
	r.flux.Cache = mgr.GetCache()
	r.flux.RESTMapper = mgr.GetRESTMapper()
	return mgr.Add(r.flux)
}

// Reconcile brings one deployment up to date, or removes what it installed.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object, err := pipeline.ReadCurrent[v1alpha1.BundleDeployment](ctx, &r.backoff, r.cached(), r.APIReader, request.NamespacedName)
	if err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, fmt.Errorf("reading bundledeployment %s: %w", request, err)
		}
		return ctrl.Result{}, r.forget(request.NamespacedName)
	}
	if !r.Shard.Owns(object) {
		return ctrl.Result{}, r.forget(request.NamespacedName) // another instance reconciles it
	}
	r.flux.Want(object)
	stored, held := r.restoreHeld(object)
	if pause := r.demandPause(object); pause > 0 {
		r.localTurns.Drop(request.NamespacedName) // a promised turn is for others meanwhile
		r.remoteTurns.Drop(request.NamespacedName)
		return ctrl.Result{RequeueAfter: pause}, nil
	}
	done, ok := r.turn(object)
	if !ok {
		return ctrl.Result{}, nil // it is queued again when its turn has come
	}
	defer done()
	defer r.Running.Begin(request.NamespacedName, LongestReconcile)()
	defer r.Metrics.Reconciled(v1alpha1.BundleDeploymentKind, request.NamespacedName, time.Now())
	defer r.took(object, r.Now())
	s := r.newState(object, stored)
	s.held = held
	defer s.close()
	if !object.DeletionTimestamp.IsZero() || object.Spec.Suspend {
		r.renderer.Abandon(request.NamespacedName)
	}
	if s.old() {
		return r.behind(ctx, s)
	}
	s.resolved.Found = r.watches.Begin(request.NamespacedName)
	defer r.watches.End(request.NamespacedName)
	bounded, cancel := context.WithTimeout(ctx, LongestReconcile)
	defer cancel()
	switch {
	case !object.DeletionTimestamp.IsZero():
		return r.remove(bounded, s)
	case object.Spec.Suspend:
		return r.suspended(bounded, s)
	}
	err = r.runSteps(bounded, s)
	err = r.handOver(bounded, s, err)
	r.keepApplied(bounded, s, err)
	err = r.scrub(bounded, s, err)
	if ctx.Err() != nil {
		return ctrl.Result{}, nil // the process ends, or lost its lease: this is no failure of the deployment
	}
	return r.finish(context.WithoutCancel(ctx), s, err)
}

// demandPause is how long an edit, or a reconcile request, has to wait. A deletion never waits.
func (r *Reconciler) demandPause(d *v1alpha1.BundleDeployment) time.Duration {
	if !d.DeletionTimestamp.IsZero() {
		return 0
	}
	return r.demands.PauseOf(d, d.Status.ObservedGeneration, d.Status.LastHandledReconcileAt, r.Now())
}

// took counts the duration of a reconcile against its namespace, but not what it takes longer because others load the machine.
func (r *Reconciler) took(d *v1alpha1.BundleDeployment, began time.Time) {
	const base, perObject = 100 * time.Millisecond, 2 * time.Millisecond
	usual := base
	if d.Status.Inventory != nil {
		usual += time.Duration(d.Status.Inventory.Count) * perObject
	}
	now := r.Now()
	r.demands.Took(client.ObjectKeyFromObject(d), now.Sub(began), usual, now)
}

// LongestReconcile bounds one reconcile, which never waits for health. The next one continues unfinished work.
const LongestReconcile = 10 * time.Minute

// finish writes the status and returns when to reconcile again.
func (r *Reconciler) finish(ctx context.Context, s *state, err error) (ctrl.Result, error) {
	if pipeline.IsStale(err) {
		r.decide.KeepDryRuns(s.deciding())
		return ctrl.Result{RequeueAfter: r.backoff.Conflicted(s.Key())}, nil // decided on a stale copy; nothing was written
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	settling := s.settling(err)
	r.settle.CountWork(settling)
	r.settle.Subscribe(settling, err)
	r.renderer.End(s.Key(), err, s.keepErr)
	pending := errors.Is(err, render.ErrPending) && s.resolved.SameAsBefore(&s.Subject) // while the same revision is converted again the status stays
	if !pending && !s.keepsTold() {
		settle.Update(settling, err)
	}
	s.settled.Announced = stage.Announce(&s.Subject, s.delivered.Applied, s.held)
	s.note.Held = nil
	deferred, failed := time.Duration(0), error(nil)
	if s.settled.Held = r.hold(s, err); !s.settled.Held {
		deferred, failed = s.store(ctx, r.writer)
	}
	if failed != nil {
		r.memory.Forget(s.Key()) // or an inventory that was not stored would be trusted
		r.inventories.Forget(string(s.Object.UID))
		return r.backoff.Conflict(s.Key(), failed)
	}
	s.note.Version = s.Object.ResourceVersion
	if catalogs.Advanced(s.Before, s.Object) {
		r.waker.Wake(s.Key(), 0) // for the next upgrade
	}
	r.settle.Emit(settling)
	r.settle.ShowExpiry(settling)
	r.settle.ShowHeld(settling)
	pipeline.LogFailure(ctx, s.Before, s.Object, err)
	pause := settling.UntilRenewal(r.pause(s, err))
	if deferred > 0 && (pause <= 0 || deferred < pause) {
		pause = deferred
	}
	return ctrl.Result{RequeueAfter: pause}, nil
}

// store writes the status. A deferred inventory that need not be written yet is due after the returned pause.
func (s *state) store(ctx context.Context, writer pipeline.StatusWriter) (deferred time.Duration, err error) {
	if deferred, err = s.listed.StoreDeferred(&s.Subject); err != nil {
		return deferred, err
	}
	return deferred, s.Write(ctx, writer)
}

// writeTimeout bounds writing a status after the work has ended or timed out.
const writeTimeout = 15 * time.Second

// newState begins a reconcile of a deployment, which the API server has as stored.
func (r *Reconciler) newState(object, stored *v1alpha1.BundleDeployment) *state {
	s := &state{Subject: stage.Subject{
		Object: object, Before: object.DeepCopy(), Stored: stored, Now: r.Now(), Room: cmp.Or(r.InventoryLimit, planning.RoomFor(object)),
		Owner:    inventory.Owner{Namespace: object.Namespace, Name: object.Name},
		Snapshot: snapshot.NewReader(r.Snapshots, string(object.UID)), Kept: r.inventories.Of(string(object.UID)),
	}}
	if effective.IsRemote(object.Spec.Target.ClusterReference) { // the deployment's namespace may not exist there
		s.Home = effective.InstallNamespace(object)
	}
	s.Expressions = expression.NewBudget(func() func() { return r.Running.Begin(s.Key(), expression.LongestEvaluation) })
	s.Rules, s.RulesErr = healthchecks.Rules(&object.Spec, s.Expressions)
	r.unlock(s)
	s.note = r.memory.Recall(client.ObjectKeyFromObject(object), object.UID)
	return s
}

// protect adds the finalizer before anything is written for the deployment.
func (r *Reconciler) protect(ctx context.Context, s *state) (pipeline.Outcome, error) {
	if controllerutil.ContainsFinalizer(s.Object, v1alpha1.Finalizer) {
		return pipeline.Continue, nil
	}
	before := s.Object.DeepCopy()
	controllerutil.AddFinalizer(s.Object, v1alpha1.Finalizer)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, s.Object, patch, client.FieldOwner(FieldManager)); err != nil {
		return pipeline.Stop, fmt.Errorf("adding the finalizer: %w", pipeline.MarkStale(err))
	}
	s.Stored = s.Object.DeepCopy()
	return pipeline.Continue, r.resolve.BeginInventory(ctx, s.resolving())
}
