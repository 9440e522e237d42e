// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/artifact/packages"
	"github.com/satchel-dev/satchel/internal/controller/budget"
	"github.com/satchel-dev/satchel/internal/controller/census"
	"github.com/satchel-dev/satchel/internal/controller/deployment/abandon"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/clusters"
	"github.com/satchel-dev/satchel/internal/controller/deployment/figures"
	"github.com/satchel-dev/satchel/internal/controller/egress"
	"github.com/satchel-dev/satchel/internal/controller/keyring"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/shard"
	"github.com/satchel-dev/satchel/internal/controller/timeline"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/internal/worker"
)

// Options are the flags of the deployment controller's process.
type Options struct {
	// ArtifactServers are the base URLs from which artifacts may be loaded.
	ArtifactServers []string
	// FluxServers are the base URLs from which artifacts of Flux's sources may be loaded.
	FluxServers []string
	// ArtifactTokenFile holds the token for our own artifact servers.
	ArtifactTokenFile string
	// ArtifactCAFile holds the CAs by which https artifact servers are trusted.
	ArtifactCAFile string
	// Namespace of the controllers, which holds the Secret with the keys.
	Namespace string
	// SharedCatalogs is the namespace with BundleCatalogs for all namespaces; "" for none.
	SharedCatalogs string
	// CachePath is the folder of loaded artifacts and of snapshots of what was applied
	// last.
	CachePath string
	// CacheMiB bounds the loaded artifacts in it.
	CacheMiB int64
	// Egress decides which addresses kubeconfigs may lead to.
	Egress guard.AddressPolicy
	// OwnCluster permits kubeconfigs that lead to the cluster of the controller itself.
	OwnCluster bool
	// PerNamespace is how many deployments of one namespace to this cluster are reconciled at once.
	PerNamespace int
	// RemoteTurn is how long one turn of a deployment to another cluster may take.
	RemoteTurn time.Duration
	// AbandonAfter is how long a removal may fail without its ServiceAccount before it is abandoned; 0 for ever.
	AbandonAfter time.Duration
	// Approvals says how long BundleApprovals are kept.
	Approvals approval.Retention
	// Remote limits the work on other clusters.
	Remote clusters.Limits
	// WatchLimit is how many watches of tenants' objects are open at once.
	WatchLimit int
	// Limits bound the artifacts.
	Limits fetch.Limits
	// Manifests bound what a bundle in them may contain.
	Manifests convert.Limits
	// Workers bound the processes that convert bundles.
	Workers worker.Options
}

// BindFlags adds the flags to a set.
func (o *Options) BindFlags(fs *pflag.FlagSet) {
	o.Limits, o.Manifests, o.Workers = fetch.DefaultLimits(), convert.DefaultLimits(), worker.DefaultOptions()
	fs.StringSliceVar(&o.ArtifactServers, "artifact-servers", []string{"http://bundle-source-controller.satchel-system.svc"},
		"The base URLs from which artifacts may be loaded; nothing else is ever contacted for them.")
	fs.StringSliceVar(&o.FluxServers, "flux-artifact-servers", []string{
		"http://source-controller.flux-system.svc.cluster.local.", "http://source-controller.flux-system.svc.cluster.local", "http://source-controller.flux-system.svc",
	}, "The base URLs from which artifacts of Flux's sources may be loaded; empty for none.")
	fs.StringVar(&o.ArtifactTokenFile, "artifact-token-file", "",
		"A file with the token that is sent only to the --artifact-servers; read again for each download.")
	fs.StringVar(&o.ArtifactCAFile, "artifact-ca-file", "",
		"A file with the CA certificates, in PEM, by which https artifact servers are trusted instead of those of the system; read again for each connection.")
	fs.StringVar(&o.SharedCatalogs, "shared-catalog-namespace", "",
		"The namespace with the BundleCatalogs that the BundleDeployments of all namespaces see, as in the source controller. Empty for none.")
	fs.StringVar(&o.CachePath, "cache-path", "/cache", "The folder for loaded artifacts and for what was applied last.")
	fs.Int64Var(&o.CacheMiB, "cache-size-mib", 1024, "How many MiB of artifacts are kept in the cache.")
	o.Egress.BindAddressFlags(fs, "that kubeconfigs may lead to", "that kubeconfigs may not lead to")
	fs.BoolVar(&o.OwnCluster, "allow-kubeconfig-to-own-cluster", false,
		"Permit kubeconfigs that lead to the cluster in which the controller runs; its API server's address, too.")
	fs.IntVar(&o.PerNamespace, "concurrent-per-namespace", 4,
		"How many deployments of one namespace are reconciled at once, and never more than half of --concurrent, so that one tenant does not block others; 0 for any number. Those with spec.kubeConfig have --concurrent-remote.")
	fs.DurationVar(&o.RemoteTurn, "remote-turn", budget.Default,
		"How long one turn of a deployment with spec.kubeConfig may take. Then its worker is released, and the next turn continues; three turns in a row without a confirmed request of the other cluster are a failure.")
	fs.DurationVar(&o.AbandonAfter, "abandon-after", abandon.Default,
		"How long a removal may fail because its ServiceAccount is gone, or, while its namespace is being deleted, because another cluster does not answer. Then what is left is annotated as orphaned where that is possible, and listed in an event and in the log. 0 for ever.")
	o.Approvals.BindFlags(fs)
	o.Remote.BindFlags(fs)
	fs.IntVar(&o.WatchLimit, "watch-limit", 2000,
		"How many watches of the objects of deployments are open at once, at most a quarter of them for one ServiceAccount, and three quarters for all other clusters; all other objects are compared at the interval. 0 for none.")
	o.Limits.BindContentFlags(fs)
	o.Manifests.BindFlags(fs)
	o.Workers.BindFlags(fs)
}

// Setup adds the deployment controller to a manager. It reconciles the deployments of a
// shard: as many to this cluster at once as given, and those to other clusters beside them.
func (o Options) Setup(ctx context.Context, mgr ctrl.Manager, concurrent int, part shard.Shard) error {
	_, err := o.setup(ctx, mgr, concurrent, part)
	return err
}

func (o Options) setup(ctx context.Context, mgr ctrl.Manager, concurrent int, part shard.Shard) (*Reconciler, error) {
	if o.RemoteTurn < 0 || o.RemoteTurn > longestReconcile {
		return nil, fmt.Errorf("--remote-turn is %s: it has to be between 0 and %s", o.RemoteTurn, longestReconcile)
	}
	if o.AbandonAfter < 0 {
		return nil, fmt.Errorf("--abandon-after is %s: it has to be at least 0", o.AbandonAfter)
	}
	if err := o.Remote.Validate(); err != nil {
		return nil, err
	}
	deps, err := o.collaborators(ctx, mgr)
	if err != nil {
		return nil, err
	}
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
	if err := metrics.Registry.Register(census.Census{Reader: mgr.GetCache(), Shard: part.Listed(), Leads: mgr.Elected()}); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	reconciler := NewReconciler(deps)
	if err := o.Approvals.Collect(mgr, reconciler.approvals(), part); err != nil {
		return nil, err
	}
	return reconciler, errors.Join(figures.RegisterRemotes(metrics.Registry, deps.Remotes), figures.RegisterWatches(metrics.Registry, reconciler.watches.Figures), mgr.Add(sweepOnce(reconciler)), reconciler.SetupWithManager(mgr, concurrent+o.Remote.Concurrent))
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

func (o Options) collaborators(ctx context.Context, mgr ctrl.Manager) (Deps, error) {
	artifacts, err := loader.NewClient(loader.ClientOptions{
		ServerURLs: o.ArtifactServers, TokenFile: o.ArtifactTokenFile, CAFile: o.ArtifactCAFile,
	})
	if err != nil {
		return Deps{}, err
	}
	loader, err := loader.New(loader.Options{
		Client: artifacts, ServerURLs: o.ArtifactServers, FluxServerURLs: o.FluxServers, CacheDir: filepath.Join(o.CachePath, "artifacts"),
		CacheBytes: o.CacheMiB << 20, Limits: o.Limits,
	})
	if err != nil {
		return Deps{}, err
	}
	catalogPackages, err := packages.Open(packages.Options{Client: artifacts, ServerURLs: o.ArtifactServers, CacheDir: filepath.Join(o.CachePath, "catalogs")})
	if err != nil {
		return Deps{}, err
	}
	snapshots, err := lastapplied.Open(filepath.Join(o.CachePath, "applied"), nil)
	if err != nil {
		return Deps{}, err
	}
	keys, err := keyring.Load(ctx, mgr.GetAPIReader(), mgr.GetClient(), o.Namespace, time.Now())
	if err != nil {
		return Deps{}, err
	}
	tenants, err := tenant.NewPool(mgr.GetConfig(), tenant.Options{Clients: o.Remote.Kept})
	if err != nil {
		return Deps{}, fmt.Errorf("preparing clients: %w", err)
	}
	measures, err := pipeline.NewMetrics(metrics.Registry)
	if err != nil {
		return Deps{}, fmt.Errorf("registering metrics: %w", err)
	}
	expiry, err := figures.NewExpiry(metrics.Registry)
	work, failed := figures.NewWork(metrics.Registry)
	holds, unheld := figures.NewHolds(metrics.Registry)
	if err := errors.Join(err, failed, unheld, figures.RegisterCache(metrics.Registry, loader)); err != nil {
		return Deps{}, fmt.Errorf("registering metrics: %w", err)
	}
	return Deps{
		Remotes: tenant.NewRemotes(o.dialer(mgr.GetConfig().Host), tenant.Options{Clients: o.Remote.Kept, Wrap: mgr.GetConfig().WrapTransport}), OwnCluster: o.OwnCluster,
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder(FieldManager),
		Metrics: measures, Work: work, Expiry: expiry, Holds: holds, Tenants: tenants, Artifacts: loader, Packages: catalogPackages, SharedCatalogs: o.SharedCatalogs, Snapshots: snapshots, Keys: keys, Manifests: o.Manifests,
		Watches: drift.Options{Limit: o.WatchLimit, PerCluster: o.Remote.Watches}, Timeline: timeline.Of(mgr),
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
