// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/controller/deployment"
	"github.com/satchel-dev/satchel/internal/controller/deployment/clusters"
	"github.com/satchel-dev/satchel/internal/controller/deployment/process"
	"github.com/satchel-dev/satchel/internal/controller/shard"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/manager"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/worker"
)

// Deployments publishes artifacts for deployments, as the source controller would.
type Deployments struct {
	// URL of the artifact server.
	URL string

	admin client.Client
	store *storage.Store
}

// StartDeployments starts the deployment controller inside a test binary, with exactly the
// permissions of its ServiceAccount, on a cluster with an installation, doing so many reconciles at
// once. It runs until ctx ends; dir keeps its files. Its options may be changed.
func StartDeployments(ctx context.Context, admin *rest.Config, dir string, concurrent int, change ...func(*process.Options)) (*Deployments, error) {
	served, url, err := ServeArtifacts(ctx, admin, dir)
	if err != nil {
		return nil, err
	}
	config, err := AccountConfig(ctx, admin, Namespace, deployment.FieldManager)
	if err != nil {
		return nil, err
	}
	mgr, err := manager.New(config, deployment.FieldManager, manager.Options{MetricsAddr: "0", HealthAddr: "0", Namespace: Namespace})
	if err != nil {
		return nil, fmt.Errorf("preparing the deployment controller: %w", err)
	}
	options := process.Options{Namespace: Namespace, ArtifactServers: []string{url}, CachePath: filepath.Join(dir, "cache"), CacheMiB: 64, WatchLimit: 2000, Remote: clusters.Default(), Limits: fetch.DefaultLimits(), Workers: worker.DefaultOptions()}
	for _, change := range change {
		change(&options)
	}
	if _, err := options.Setup(ctx, mgr, concurrent, shard.Shard{}); err != nil {
		return nil, fmt.Errorf("preparing the deployment controller: %w", err)
	}
	go func() {
		if err := mgr.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "the deployment controller ended:", err)
		}
	}()
	return served, nil
}

// ServeArtifacts serves what is published later, until ctx ends, at the URL that it
// returns. Nothing is installed: that is for a controller of the caller.
func ServeArtifacts(ctx context.Context, admin *rest.Config, dir string) (*Deployments, string, error) {
	c, err := Client(admin)
	if err != nil {
		return nil, "", err
	}
	var handler http.Handler
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	context.AfterFunc(ctx, served.Close)
	store, err := storage.Open(storage.Options{Dir: filepath.Join(dir, "store"), BaseURL: served.URL})
	if err != nil {
		return nil, "", fmt.Errorf("opening the artifact store: %w", err)
	}
	handler = server.NewHandler(store, server.Options{})
	return &Deployments{URL: served.URL, admin: c, store: store}, served.URL, nil
}

// Publish makes a tree the artifact of the BundleSource of the given name, as the
// source controller would, and creates the source where there is none.
func (d *Deployments) Publish(ctx context.Context, namespace, name, revision string, files fs.FS) (meta.Artifact, error) {
	published, err := d.store.Put(ctx, artifact.Owner{Kind: "bundlesource", Namespace: namespace, Name: name}, revision, files)
	if err != nil {
		return meta.Artifact{}, fmt.Errorf("publishing %s/%s: %w", namespace, name, err)
	}
	source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	source.Spec.Sources = []v1alpha1.Source{{ConfigMap: &v1alpha1.LocalReference{Name: "content"}}}
	if err := d.admin.Create(ctx, source); err != nil {
		if !apierrors.IsAlreadyExists(err) {
			return meta.Artifact{}, fmt.Errorf("creating source %s/%s: %w", namespace, name, err)
		}
		if err := d.admin.Get(ctx, client.ObjectKeyFromObject(source), source); err != nil {
			return meta.Artifact{}, fmt.Errorf("reading source %s/%s: %w", namespace, name, err)
		}
	}
	before := source.DeepCopy()
	source.Status.Artifact, source.Status.SourcesDigest = &published, effective.SourcesDigest(&source.Spec)
	source.Status.ObservedGeneration = source.Generation
	conditions.MarkTrue(source, meta.ReadyCondition, v1alpha1.ReasonSucceeded, "published")
	if err := d.admin.Status().Patch(ctx, source, client.MergeFrom(before)); err != nil {
		return meta.Artifact{}, fmt.Errorf("publishing %s/%s: %w", namespace, name, err)
	}
	return published, nil
}
