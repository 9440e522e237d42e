// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/artifact/packages"
	"github.com/satchel-dev/satchel/internal/catalog/lean"
	"github.com/satchel-dev/satchel/internal/controller/deployment"
	"github.com/satchel-dev/satchel/internal/controller/deployment/figures"
	"github.com/satchel-dev/satchel/internal/controller/egress"
	"github.com/satchel-dev/satchel/internal/controller/keyring"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/shard"
	"github.com/satchel-dev/satchel/internal/controller/timeline"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// Setup adds the deployment controller to a manager, and returns its reconciler. It reconciles the deployments of a
// shard: as many to this cluster at once as given, and those to other clusters beside them.
func (o Options) Setup(ctx context.Context, mgr ctrl.Manager, concurrent int, part shard.Shard) (*deployment.Reconciler, error) {
	if o.RemoteTurn < 0 || o.RemoteTurn > deployment.LongestReconcile {
		return nil, fmt.Errorf("--remote-turn is %s: it has to be between 0 and %s", o.RemoteTurn, deployment.LongestReconcile)
	}
	if o.AbandonAfter < 0 {
		return nil, fmt.Errorf("--abandon-after is %s: it has to be at least 0", o.AbandonAfter)
	}
	if err := o.Remote.Validate(); err != nil {
		return nil, err
	}
	var err error
	if o.Workers.Metrics, err = worker.NewMetrics(metrics.Registry); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	workers, err := worker.New(o.Workers)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(closing{workers}); err != nil {
		return nil, errors.Join(err, workers.Close())
	}
	deps, err := o.collaborators(ctx, mgr, workers)
	if err != nil {
		return nil, err
	}
	deps.Shard = part
	deps.Workers = workers
	deps.Running = pipeline.NewRunning()
	if err := errors.Join(deps.Running.Register(metrics.Registry), mgr.AddHealthzCheck("reconciles", deps.Running.Check)); err != nil {
		return nil, fmt.Errorf("preparing the health check: %w", err)
	}
	deps.PerNamespace, deps.Concurrent = pipeline.TurnShare(o.PerNamespace, concurrent), concurrent
	deps.RemoteTurn = o.RemoteTurn
	if deps.AbandonAfter = o.AbandonAfter; o.AbandonAfter == 0 {
		deps.AbandonAfter = -1
	}
	deps.Remotely = o.Remote.Concurrent
	reconciler := deployment.NewReconciler(deps)
	if err := o.Approvals.Collect(mgr, reconciler.Approvals().Collector(part)); err != nil {
		return nil, err
	}
	return reconciler, errors.Join(
		figures.RegisterRemotes(metrics.Registry, deps.Remotes),
		figures.RegisterWatches(metrics.Registry, reconciler.Watched),
		mgr.Add(sweepOnce(reconciler)),
		reconciler.SetupWithManager(mgr, concurrent+o.Remote.Concurrent),
	)
}

// closing ends the worker processes with the manager, also in a replica that waits for the lease.
type closing struct{ workers io.Closer }

// Start implements manager.Runnable.
func (c closing) Start(ctx context.Context) error {
	<-ctx.Done()
	return c.workers.Close()
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (closing) NeedLeaderElection() bool { return false }

// sweepOnce runs Sweep. Files that it could not drop stay until the next start.
func sweepOnce(r *deployment.Reconciler) manager.RunnableFunc {
	return func(ctx context.Context) error {
		if err := r.Sweep(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "files of deleted deployments stay in the cache until the next start")
		}
		return nil
	}
}

// collaborators are what the reconciler works with, as far as the manager and the flags decide it.
func (o Options) collaborators(ctx context.Context, mgr ctrl.Manager, workers jobs.Runner) (deployment.Deps, error) {
	artifacts, err := loader.NewClient(loader.ClientOptions{
		ServerURLs: o.ArtifactServers, TokenFile: o.ArtifactTokenFile, CAFile: o.ArtifactCAFile,
	})
	if err != nil {
		return deployment.Deps{}, err
	}
	loader, err := loader.New(loader.Options{
		Client: artifacts, ServerURLs: o.ArtifactServers, FluxServerURLs: o.FluxServers, CacheDir: filepath.Join(o.CachePath, "artifacts"),
		CacheBytes: o.CacheMiB << 20, Limits: o.Limits,
	})
	if err != nil {
		return deployment.Deps{}, err
	}
	catalogPackages, err := packages.Open(packages.Options{
		Client: artifacts, ServerURLs: o.ArtifactServers, CacheDir: filepath.Join(o.CachePath, "catalogs"),
		Parse: func(ctx context.Context, namespace, name string, blobs *os.File) (lean.Parsed, error) {
			return jobs.ParsePackage(ctx, workers, namespace, name, blobs)
		},
	})
	if err != nil {
		return deployment.Deps{}, err
	}
	snapshots, err := lastapplied.Open(filepath.Join(o.CachePath, "applied"), nil)
	if err != nil {
		return deployment.Deps{}, err
	}
	keys, err := keyring.Load(ctx, mgr.GetAPIReader(), mgr.GetClient(), o.Namespace, timeline.Of(mgr).Now())
	if err != nil {
		return deployment.Deps{}, err
	}
	tenants, err := tenant.NewPool(mgr.GetConfig(), tenant.Options{Clients: o.Remote.Kept})
	if err != nil {
		return deployment.Deps{}, fmt.Errorf("preparing clients: %w", err)
	}
	measures, err := pipeline.NewMetrics(metrics.Registry)
	if err != nil {
		return deployment.Deps{}, fmt.Errorf("registering metrics: %w", err)
	}
	expiry, err := figures.NewExpiry(metrics.Registry)
	work, failed := figures.NewWork(metrics.Registry)
	holds, unheld := figures.NewHolds(metrics.Registry)
	if err := errors.Join(err, failed, unheld, figures.RegisterCache(metrics.Registry, loader)); err != nil {
		return deployment.Deps{}, fmt.Errorf("registering metrics: %w", err)
	}
	return deployment.Deps{
		Remotes: tenant.NewRemotes(o.dialer(mgr.GetConfig().Host), tenant.Options{Clients: o.Remote.Kept, Wrap: mgr.GetConfig().WrapTransport}), OwnCluster: o.OwnCluster,
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder(deployment.FieldManager),
		Metrics: measures, Work: work, Expiry: expiry, Holds: holds, Tenants: tenants, Artifacts: loader, Packages: catalogPackages, SharedCatalogs: o.SharedCatalogs, Snapshots: snapshots, Keys: keys, Manifests: o.Manifests,
		Watches: drift.Options{Limit: o.WatchLimit, PerCluster: o.Remote.Watches}, Timeline: timeline.Of(mgr), Now: timeline.Of(mgr).Now,
	}, nil
}

// dialer connects to the permitted servers of kubeconfigs.
func (o Options) dialer(apiServer string) tenant.Dial {
	policy := o.Egress
	if !o.OwnCluster {
		policy.Protected = guard.NewProtected(egress.APIServers(apiServer, os.Getenv("KUBERNETES_SERVICE_HOST"))...)
	}
	return policy.Dialer(guard.Access{})
}
