// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/watch"
	"github.com/satchel-dev/satchel/internal/controller/census"
	"github.com/satchel-dev/satchel/internal/controller/egress"
	"github.com/satchel-dev/satchel/internal/controller/shard"
	"github.com/satchel-dev/satchel/internal/controller/step"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/artifact"
)

// Options are the flags of the deployment controller's process.
type Options struct {
	// ArtifactServers are the base URLs from which artifacts may be loaded.
	ArtifactServers []string
	// FluxServers are the base URLs from which artifacts of Flux's sources may be loaded.
	FluxServers []string
	// ArtifactTokenFile holds the token that our own artifact servers may ask for.
	ArtifactTokenFile string
	// ArtifactCAFile holds the authorities by which https artifact servers are trusted.
	ArtifactCAFile string
	// CachePath is the folder of loaded artifacts and of what was applied last.
	CachePath string
	// CacheMiB bounds the loaded artifacts in it.
	CacheMiB int64
	// Egress decides which addresses kubeconfigs may lead to.
	Egress fetch.AddressPolicy
	// OwnCluster permits kubeconfigs that lead to the cluster of the controller itself.
	OwnCluster bool
	// PerNamespace is how many deployments of one namespace are worked on at once.
	PerNamespace int
	// WatchLimit is how many watches of tenants' objects are open at once.
	WatchLimit int
	// Limits bound the artifacts.
	Limits fetch.Limits
	// Manifests bound what a bundle in them may contain.
	Manifests convert.Limits
}

// BindFlags adds the flags to a set.
func (o *Options) BindFlags(fs *pflag.FlagSet) {
	o.Limits, o.Manifests = fetch.DefaultLimits(), convert.DefaultLimits()
	fs.StringSliceVar(&o.ArtifactServers, "artifact-servers", []string{"http://bundle-source-controller.satchel-system.svc"},
		"The base URLs from which artifacts may be loaded; nothing else is ever contacted for them.")
	fs.StringSliceVar(&o.FluxServers, "flux-artifact-servers", []string{
		"http://source-controller.flux-system.svc.cluster.local.", "http://source-controller.flux-system.svc.cluster.local", "http://source-controller.flux-system.svc",
	}, "The base URLs from which artifacts of Flux's sources may be loaded; empty for none.")
	fs.StringVar(&o.ArtifactTokenFile, "artifact-token-file", "",
		"A file with the token that is sent to the --artifact-servers, and to nobody else; read again for each download.")
	fs.StringVar(&o.ArtifactCAFile, "artifact-ca-file", "",
		"A file with the authorities, in PEM, by which https artifact servers are trusted instead of those of the system; read again for each connection.")
	fs.StringVar(&o.CachePath, "cache-path", "/cache", "The folder for loaded artifacts and for what was applied last.")
	fs.Int64Var(&o.CacheMiB, "cache-size-mib", 1024, "How many MiB of artifacts are kept in the cache.")
	o.Egress.BindAddressFlags(fs, "that kubeconfigs may lead to", "that kubeconfigs may not lead to")
	fs.BoolVar(&o.OwnCluster, "allow-kubeconfig-to-own-cluster", false,
		"Permit kubeconfigs that lead to the cluster in which the controller runs; its API server's address, too.")
	fs.IntVar(&o.PerNamespace, "concurrent-per-namespace", 6,
		"How many deployments of one namespace are worked on at once, so that those of one tenant do not keep others waiting; 0 for any number.")
	fs.IntVar(&o.WatchLimit, "watch-limit", 2000,
		"How many watches of the objects of deployments are open at once, no account having more than a quarter of them; what is beyond is compared at the interval. 0 for none.")
	o.Limits.BindContentFlags(fs)
	o.Manifests.BindFlags(fs)
}

// Setup adds the deployment controller to a manager. It looks after the deployments of
// a shard, running so many reconciles at once.
func (o Options) Setup(_ context.Context, mgr ctrl.Manager, concurrent int, part shard.Shard) error {
	_, err := o.setup(mgr, concurrent, part)
	return err
}

func (o Options) setup(mgr ctrl.Manager, concurrent int, part shard.Shard) (*Reconciler, error) {
	deps, err := o.collaborators(mgr)
	if err != nil {
		return nil, err
	}
	deps.Shard = part
	deps.PerNamespace = o.PerNamespace
	deps.Remotely, deps.RemotelyPerNamespace = max(1, concurrent*3/4), max(1, concurrent/2)
	if err := metrics.Registry.Register(census.Census{Reader: mgr.GetCache(), Shard: part.Listed(), Leads: mgr.Elected()}); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	reconciler := NewReconciler(deps)
	return reconciler, errors.Join(registerWatchFigures(metrics.Registry, reconciler.watches.Figures), mgr.Add(sweepOnce(reconciler)), reconciler.SetupWithManager(mgr, concurrent))
}

func (o Options) collaborators(mgr ctrl.Manager) (Deps, error) {
	artifacts, err := artifact.NewClient(artifact.ClientOptions{
		ServerURLs: o.ArtifactServers, TokenFile: o.ArtifactTokenFile, CAFile: o.ArtifactCAFile,
	})
	if err != nil {
		return Deps{}, err
	}
	loader, err := artifact.NewLoader(artifact.LoaderOptions{
		Client: artifacts, ServerURLs: o.ArtifactServers, FluxServerURLs: o.FluxServers, CacheDir: filepath.Join(o.CachePath, "artifacts"),
		CacheBytes: o.CacheMiB << 20, Limits: o.Limits,
	})
	if err != nil {
		return Deps{}, err
	}
	snapshots, err := artifact.OpenSnapshots(filepath.Join(o.CachePath, "applied"), nil)
	if err != nil {
		return Deps{}, err
	}
	key, err := hashKey(filepath.Join(o.CachePath, "hash-key"))
	if err != nil {
		return Deps{}, err
	}
	tenants, err := tenant.NewPool(mgr.GetConfig(), tenant.Options{})
	if err != nil {
		return Deps{}, fmt.Errorf("preparing clients: %w", err)
	}
	measures, err := step.NewMetrics(metrics.Registry)
	if err != nil {
		return Deps{}, fmt.Errorf("registering metrics: %w", err)
	}
	expiry, err := NewExpiry(metrics.Registry)
	work, failed := NewWork(metrics.Registry)
	holds, unheld := NewHolds(metrics.Registry)
	if err := errors.Join(err, failed, unheld, registerCacheFigures(metrics.Registry, loader)); err != nil {
		return Deps{}, fmt.Errorf("registering metrics: %w", err)
	}
	return Deps{
		Remotes: tenant.NewRemotes(o.dialer(mgr.GetConfig().Host), tenant.Options{Wrap: mgr.GetConfig().WrapTransport}), OwnCluster: o.OwnCluster,
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder(FieldManager),
		Metrics: measures, Work: work, Expiry: expiry, Holds: holds, Tenants: tenants, Artifacts: loader, Snapshots: snapshots, HashKey: key, Manifests: o.Manifests,
		Watches: watch.Options{Limit: o.WatchLimit},
	}, nil
}

// dialer connects to the servers of kubeconfigs, where that is permitted.
func (o Options) dialer(apiServer string) tenant.Dial {
	policy := o.Egress
	if !o.OwnCluster {
		policy.Protected = fetch.NewProtected(egress.APIServers(apiServer, os.Getenv("KUBERNETES_SERVICE_HOST"))...)
	}
	return policy.Dialer(fetch.Access{})
}

// keyBytes is the length of the key that hashes in inventories are made with.
const keyBytes = 32

// hashKey reads the installation's key, or makes one. With a key, the hash of a
// Secret in a status is no help in guessing it. When the key is lost, each
// object is applied once more, which changes nothing.
func hashKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if err == nil && len(key) == keyBytes {
		return key, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading the hash key: %w: check --cache-path", err)
	}
	key = make([]byte, keyBytes)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("making a hash key: %w", err)
	}
	if err := os.WriteFile(path, key, 0o600); err != nil {
		return nil, fmt.Errorf("storing the hash key: %w: check --cache-path", err)
	}
	return key, nil
}
