// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/satchel-dev/satchel/internal/artifact/catalogs"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/artifact/upload"
	"github.com/satchel-dev/satchel/internal/controller/egress"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/shard"
	"github.com/satchel-dev/satchel/internal/controller/source"
	"github.com/satchel-dev/satchel/internal/controller/source/tokenreview"
	"github.com/satchel-dev/satchel/internal/controller/source/uploads"
	"github.com/satchel-dev/satchel/internal/controller/timeline"
	"github.com/satchel-dev/satchel/internal/controller/upstream/figures"
	"github.com/satchel-dev/satchel/internal/controller/upstream/scratch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/internal/fetch/image/cloud"
	"github.com/satchel-dev/satchel/internal/sourcefetch"
)

// Setup adds the source controller and its servers to a manager. It reconciles the sources
// of a shard, with the given number of workers.
func (o Options) Setup(mgr ctrl.Manager, concurrent int, part shard.Shard) error {
	store, indexed, handler, err := o.artifacts(mgr)
	if err != nil {
		return err
	}
	deps, err := o.deps(mgr, concurrent, part, store)
	if err != nil {
		return err
	}
	if err := metrics.Registry.Register(figures.StoreCollector{Store: store, Server: handler}); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	if err := errors.Join(deps.Running.Register(metrics.Registry), mgr.AddHealthzCheck("reconciles", deps.Running.Check)); err != nil {
		return fmt.Errorf("preparing the health check: %w", err)
	}
	reconciler := source.NewReconciler(deps)
	return errors.Join(
		mgr.Add(sweepOnce(reconciler)),
		o.Server.add(mgr, handler),
		o.addUploads(mgr, reconciler),
		reconciler.SetupWithManager(mgr, concurrent),
		o.addCatalogs(mgr, deps, indexed, concurrent),
	)
}

// artifacts opens the stores, and returns the handler that serves what is in them.
func (o Options) artifacts(mgr ctrl.Manager) (*storage.Store, *catalogs.Store, *server.Handler, error) {
	readers, err := o.Server.readers(mgr.GetClient())
	if err != nil {
		return nil, nil, nil, err
	}
	scheme, err := o.Server.scheme()
	if err != nil {
		return nil, nil, nil, err
	}
	store, err := storage.Open(storage.Options{
		Dir: filepath.Join(o.Storage.Path, "artifacts"), BaseURL: scheme + "://" + o.Server.AdvAddr,
		NamespaceBytes: o.Storage.Quota, FS: o.Storage.Files,
	})
	if err != nil {
		return nil, nil, nil, err
	}
	indexed, err := o.openCatalogs(store)
	if err != nil {
		return nil, nil, nil, err
	}
	served := &catalogs.Handler{Store: indexed, Shared: o.Catalogs.SharedNamespace}
	return store, indexed, server.NewHandler(store, server.Options{Readers: readers, Catalogs: served}), nil
}

// deps is what the reconciler works with.
func (o Options) deps(mgr ctrl.Manager, concurrent int, part shard.Shard, store *storage.Store) (source.Deps, error) {
	dir := filepath.Join(o.Storage.Path, "scratch")
	if err := scratch.Prepare(dir); err != nil {
		return source.Deps{}, err
	}
	steps, err := pipeline.NewMetrics(metrics.Registry)
	measures, failed := figures.NewMeasures(metrics.Registry)
	if err := errors.Join(err, failed); err != nil {
		return source.Deps{}, fmt.Errorf("registering metrics: %w", err)
	}
	return source.Deps{
		Client:       mgr.GetClient(),
		APIReader:    mgr.GetAPIReader(),
		Events:       mgr.GetEventRecorder(source.FieldManager),
		Shard:        part,
		Metrics:      steps,
		Measures:     measures,
		Running:      pipeline.NewRunning(),
		Store:        store,
		Scratch:      dir,
		Upstreams:    o.upstreams(mgr),
		Retention:    o.Storage.Retention,
		PerNamespace: pipeline.TurnShare(o.PerNamespace, concurrent),
		Concurrent:   concurrent,
		Timeline:     timeline.Of(mgr),
		TrustEvery:   o.TrustEvery,

		SharedNamespace: o.Catalogs.SharedNamespace,
	}, nil
}

// upstreams says how upstreams are reached: never the API server, nor the servers of this process.
func (o Options) upstreams(mgr ctrl.Manager) sourcefetch.Options {
	found := sourcefetch.Options{Limits: o.Limits, Policy: o.Policy}
	found.Policy.Protected = guard.NewProtected(slices.Concat(egress.APIServers(mgr.GetConfig().Host, os.Getenv("KUBERNETES_SERVICE_HOST")),
		egress.ArtifactServer(o.Server.AdvAddr, o.Server.Addr), egress.UploadServer(o.UploadAddr))...)
	if o.CloudLogins {
		found.CloudLogins = cloud.New().Keychain
	}
	return found
}

// addUploads adds the server for uploads to a manager, unless it is off.
func (o Options) addUploads(mgr ctrl.Manager, r *source.Reconciler) error {
	if o.UploadAddr == "" {
		return nil
	}
	receiver := &uploads.Receiver{
		Client: r.Client, APIReader: r.APIReader, Shard: r.Shard, Tokens: tokenreview.New(r.Client, upload.Audience, nil),
		Sources: r, Store: r.Store, Scratch: r.Scratch, Limits: r.Upstreams.Limits, Measures: r.Measures,
	}
	s := &leaderServer{what: "receiving uploads", flag: "--upload-addr", standby: refuseUpload, http: receiver.Server(o.UploadAddr), elected: mgr.Elected()}
	s.http.Handler = s.onlyLeading(s.http.Handler)
	return errors.Join(mgr.AddReadyzCheck("uploads", s.ready), mgr.Add(s))
}

// sweepOnce runs Sweep. Files that it could not remove stay until the next start.
func sweepOnce(r *source.Reconciler) manager.RunnableFunc {
	return func(ctx context.Context) error {
		if err := r.Sweep(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "artifacts of deleted sources stay until the next start")
		}
		return nil
	}
}
