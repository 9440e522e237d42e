// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/satchel-dev/satchel/internal/artifact/catalogs"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/controller/catalog"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/source"
	"github.com/satchel-dev/satchel/internal/worker"
)

// CatalogOptions are about BundleCatalogs.
type CatalogOptions struct {
	// SharedNamespace is the namespace with catalogs and image policies for all namespaces; "" for none.
	SharedNamespace string
	// Limits bound one catalog.
	Limits fbc.Limits
	// DownloadBytes bounds what an image or archive with a catalog transfers.
	DownloadBytes int64
	// WorkerMemory and WorkerCPU bound the process that indexes a catalog.
	WorkerMemory int64
	WorkerCPU    time.Duration
}

// DefaultCatalogOptions are those without flags.
func DefaultCatalogOptions() CatalogOptions {
	return CatalogOptions{Limits: fbc.DefaultLimits(), DownloadBytes: 1 << 30, WorkerMemory: 256 << 20, WorkerCPU: 2 * time.Minute}
}

const mebibyte = 1 << 20

func (o *CatalogOptions) bindFlags(fs *pflag.FlagSet) {
	*o = DefaultCatalogOptions()
	fs.StringVar(&o.SharedNamespace, "shared-catalog-namespace", "",
		"The namespace with the BundleCatalogs and BundleImagePolicies that all namespaces share. The catalogs are served at /catalogs/NAME, too, and with --artifact-auth=token every ServiceAccount may read them. Its policies hold in every namespace, and those of another namespace cannot loosen them. Empty for none.")
	fs.Int64Var(&o.Limits.Bytes, "max-catalog-bytes", o.Limits.Bytes, "Most bytes of the files of one catalog.")
	fs.Int64Var(&o.Limits.Blob, "max-catalog-blob-bytes", o.Limits.Blob, "Most bytes of one JSON value or YAML document of a catalog. About ten times as many are needed in memory.")
	fs.IntVar(&o.Limits.Packages, "max-catalog-packages", o.Limits.Packages, "Most packages of one catalog.")
	fs.IntVar(&o.Limits.Bundles, "max-catalog-bundles", o.Limits.Bundles, "Most bundles of one catalog.")
	fs.Int64Var(&o.DownloadBytes, "max-catalog-download-bytes", o.DownloadBytes,
		"Most bytes that the image or archive of one catalog may transfer. Catalog images hold programs and caches, too, which are dropped.")
	fs.Int64Var(&o.WorkerMemory, "catalog-worker-memory-bytes", o.WorkerMemory,
		"How much memory the process that indexes a catalog may map. One runs at a time. The memory limit of the container has to hold this beside GOMEMLIMIT.")
	fs.DurationVar(&o.WorkerCPU, "catalog-worker-cpu", o.WorkerCPU, "How much CPU time indexing one catalog may take.")
}

// workers are the options of the pool that indexes catalogs. No process runs while nothing is indexed.
func (o *CatalogOptions) workers(observe *worker.Metrics) worker.Options {
	return worker.Options{
		Workers: 1, CPU: o.WorkerCPU, Memory: o.WorkerMemory, Output: 64 * mebibyte, Wall: time.Hour,
		NamespaceCPU: 5 * o.WorkerCPU, NamespaceWindow: 30 * o.WorkerCPU, Metrics: observe,
	}
}

// openCatalogs opens the store of catalogs, which counts against the same quota as the artifacts.
func (o Options) openCatalogs(quota *storage.Store) (*catalogs.Store, error) {
	return catalogs.Open(catalogs.Options{
		Dir: filepath.Join(o.Storage.Path, "catalogs"), Files: o.Storage.Files, Quota: quota, Bytes: o.Catalogs.Limits.Bytes,
	})
}

// addCatalogs adds the controller of BundleCatalogs to a manager. It shares what the controller of BundleSources works with.
func (o Options) addCatalogs(mgr ctrl.Manager, shared source.Deps, store *catalogs.Store, concurrent int) error {
	observe, err := worker.NewMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	workers, err := worker.New(o.Catalogs.workers(observe))
	if err != nil {
		return fmt.Errorf("preparing to index catalogs (--catalog-worker-memory-bytes, --catalog-worker-cpu): %w", err)
	}
	scheme, err := o.Server.scheme()
	if err != nil {
		return errors.Join(err, workers.Close())
	}
	upstreams := shared.Upstreams
	upstreams.Limits.DownloadBytes = o.Catalogs.DownloadBytes
	upstreams.Limits.StreamBytes = 4 * o.Catalogs.DownloadBytes
	upstreams.Limits.ExtractedBytes = o.Catalogs.Limits.Bytes
	upstreams.Limits.FileBytes = o.Catalogs.Limits.Bytes
	reconciler := catalog.NewReconciler(catalog.Deps{
		Client: shared.Client, Shard: shared.Shard, APIReader: shared.APIReader, Events: shared.Events, Metrics: shared.Metrics,
		Running: shared.Running, Measures: shared.Measures, Store: store, Workers: workers, Scratch: shared.Scratch,
		Upstreams: upstreams, Limits: o.Catalogs.Limits, BaseURL: scheme + "://" + o.Server.AdvAddr, FieldManager: source.FieldManager,
		PerNamespace: pipeline.TurnShare(o.PerNamespace, concurrent), Concurrent: concurrent, Timeline: shared.Timeline, TrustEvery: shared.TrustEvery,
		SharedNamespace: shared.SharedNamespace,
	})
	return errors.Join(
		mgr.Add(closing{workers}),
		mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			if err := reconciler.Sweep(ctx); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "contents of deleted catalogs stay until the next start")
			}
			return nil
		})),
		reconciler.SetupWithManager(mgr, concurrent),
	)
}

// closing ends the worker processes when the manager ends.
type closing struct{ pool *worker.Pool }

// Start implements manager.Runnable.
func (c closing) Start(ctx context.Context) error {
	<-ctx.Done()
	return c.pool.Close()
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (closing) NeedLeaderElection() bool { return false }
