// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/catalogs"
	"github.com/satchel-dev/satchel/internal/artifact/server"
	"github.com/satchel-dev/satchel/internal/artifact/storage"
	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/catalog/index"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// catalogCluster is a cluster with an artifact server that serves catalogs.
type catalogCluster struct {
	testCluster

	store *catalogs.Store
	url   string
}

func newCatalogCluster(t *testing.T) catalogCluster {
	t.Helper()
	c := catalogCluster{testCluster: newTestCluster(t)}
	served := httptest.NewUnstartedServer(nil)
	c.url = "http://" + served.Listener.Addr().String()
	artifacts, err := storage.Open(storage.Options{Dir: t.TempDir(), BaseURL: c.url})
	if err != nil {
		t.Fatal(err)
	}
	if c.store, err = catalogs.Open(catalogs.Options{Dir: t.TempDir(), Quota: artifacts, Bytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	served.Config.Handler = server.NewHandler(artifacts, server.Options{Catalogs: &catalogs.Handler{Store: c.store}})
	served.Start()
	t.Cleanup(served.Close)
	return c
}

// serve publishes the catalog of a folder as the source controller does, and creates the BundleCatalog.
func (c catalogCluster) serve(name, folder string, edit ...func(*v1alpha1.BundleCatalog)) {
	c.T.Helper()
	draft, err := c.store.NewDraft()
	if err != nil {
		c.T.Fatal(err)
	}
	defer draft.Discard()
	x, err := index.Build(os.DirFS(folder), ".", fbc.DefaultLimits(), draft.File(index.AllFile), draft.File(index.LeanFile))
	if err != nil {
		c.T.Fatal(err)
	}
	lean, err := draft.OpenLean()
	if err != nil {
		c.T.Fatal(err)
	}
	defer lean.Close()
	if err := x.Summarize(lean, draft.File(index.ListFile)); err != nil {
		c.T.Fatal(err)
	}
	encoded, err := x.Encode()
	if err == nil {
		_, err = draft.File(index.IndexFile).Write(encoded)
	}
	if err != nil {
		c.T.Fatal(err)
	}
	if _, err := c.store.Publish(types.NamespacedName{Namespace: c.Namespace, Name: name}, draft, nil); err != nil {
		c.T.Fatal(err)
	}
	c.Create(aCatalog(append([]func(*v1alpha1.BundleCatalog){func(o *v1alpha1.BundleCatalog) {
		o.Name = name
		o.Spec.Priority = 0
		o.Status.URLs.Base = c.url + catalogs.Prefix + c.Namespace + "/" + name
	}}, edit...)...))
}

// TestCatalogOfCluster: the answers about a catalog of the cluster are those about its files.
func TestCatalogOfCluster(t *testing.T) {
	c := newCatalogCluster(t)
	shopCatalog(t)
	c.serve("community", "shop")
	for _, args := range [][]string{
		{"resolve", "shop"},
		{"resolve", "shop", "-o", "json"},
		{"resolve", "shop", "--installed", "shop.v1.0.0@1.0.0", "--channel", "stable"},
		{"resolve", "shop", "--version", "7.x"},
		{"resolve", "shopp"},
		{"catalog", "show", "shop"},
		{"catalog", "show", "shop", "-o", "json"},
		{"catalog", "show", "shopp"},
		{"catalog", "channels", "shop"},
		{"catalog", "graph", "shop", "--from", "1.0.0", "--to", "2.0.0"},
		{"catalog", "search", "sh"},
		{"catalog", "search", "zz"},
	} {
		local := satchel(t, append(slices.Clone(args), "--catalog=community=shop")...)
		if local.Out+local.Err == "" {
			t.Fatalf("%q says nothing", args)
		}
		if named := c.Satchel(append(slices.Clone(args), "--catalog=community")...); named != local {
			t.Errorf("%q: got %s, want %s", args, named, local)
		}
		if all := c.Satchel(args...); all != local {
			t.Errorf("%q without --catalog: got %s, want %s", args, all, local)
		}
	}
}

// TestCatalogsOfCluster: which catalogs are read, and what is said about those that cannot be.
func TestCatalogsOfCluster(t *testing.T) {
	c := newCatalogCluster(t)
	shopCatalog(t)
	c.Want(c.Satchel("resolve", "shop"), kit.ExitError, "sees no BundleCatalog that serves something")
	c.serve("community", "shop")
	c.Create(aCatalog(func(o *v1alpha1.BundleCatalog) {
		o.Name = "broken"
		o.Status.Content, o.Status.URLs = nil, nil
		o.Status.Conditions = []metav1.Condition{no(meta.ReadyCondition, v1alpha1.ReasonUnauthorized, "the registry refuses")}
	}))
	c.Want(c.Satchel("resolve", "shop"), kit.ExitOK, "Catalog    community", "/broken is left out, since it serves nothing")
	c.Want(c.Satchel("resolve", "shop", "--catalog", "broken"), kit.ExitError, "/broken serves nothing: the registry refuses")
	c.Want(c.Satchel("resolve", "shop", "--catalog", "comunity"), kit.ExitError, `there is no BundleCatalog "comunity"`, "community", "--catalog comunity=PATH")
	c.Want(c.Satchel("resolve", "shop", "--catalog", "community", "--catalog", "mirror=mirror.yaml,priority=1"), kit.ExitOK, "Catalog    mirror")
	c.Want(c.Satchel("resolve", "shop", "--as", "jane"), kit.ExitError, "you may not list bundlecatalogs.satchel.dev in the namespace")
	c.Want(c.Satchel("resolve", "shop", "--catalog", "community", "--as", "jane"), kit.ExitError, "you may not list bundlecatalogs.satchel.dev in the namespace")

	status := http.StatusUnauthorized
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	c.moved(refusing.URL)
	c.Want(c.Satchel("resolve", "shop", "--catalog", "community"), kit.ExitError, "accepts only tokens of ServiceAccounts")
	status = http.StatusNotFound
	c.Want(c.Satchel("catalog", "search", "shop", "--catalog", "community"), kit.ExitError, "the server does not have the BundleCatalog")
	status = http.StatusServiceUnavailable
	c.Want(c.Satchel("resolve", "shop", "--catalog", "community"), kit.ExitError, "answers 503 Service Unavailable")
	refusing.Close()
	c.Want(c.Satchel("resolve", "shop", "--catalog", "community"), kit.ExitError, "connection refused", "the command check says whether")
}

// moved writes another server into the status of the catalog.
func (c catalogCluster) moved(url string) {
	c.T.Helper()
	var o v1alpha1.BundleCatalog
	if err := c.Client.Get(c.T.Context(), client.ObjectKey{Namespace: c.Namespace, Name: "community"}, &o); err != nil {
		c.T.Fatal(err)
	}
	o.Status.URLs.Base = url
	if err := c.Client.Status().Update(c.T.Context(), &o); err != nil {
		c.T.Fatal(err)
	}
}

// TestSharedCatalogs: a namespace sees those of the shared one, behind its own.
func TestSharedCatalogs(t *testing.T) {
	c := newCatalogCluster(t)
	before := shopCatalog(t)
	shared := c
	shared.Namespace = controlplane.NewNamespace(t, c.CP)
	shared.serve("community", "shop", func(o *v1alpha1.BundleCatalog) { o.Spec.Priority = 3 })
	shared.serve("own", "shop", func(o *v1alpha1.BundleCatalog) { o.Spec.Priority = 9 })
	c.serve("own", "shop", func(o *v1alpha1.BundleCatalog) { o.Spec.Priority = 1 })
	t.Chdir(before)

	with := func(args ...string) outcome {
		return c.Satchel(append(args, "--shared-catalog-namespace", shared.Namespace)...)
	}
	c.Want(with("resolve", "shop"), kit.ExitOK, "Catalog    community", "catalog own: 6 bundles", "priority 1")
	c.Want(with("resolve", "shop", "--catalog", "own"), kit.ExitOK, "Catalog    own", "priority 1")
	c.Want(with("resolve", "shop", "--catalog", "community"), kit.ExitOK, "priority 3")
	c.Want(c.Satchel("resolve", "shop", "--catalog", "community"), kit.ExitError, `there is no BundleCatalog "community"`)
	c.Want(with("catalog", "list"), kit.ExitOK, "NAME        READY   PACKAGES   BUNDLES   PRIORITY   SCOPE              DIGEST                UPDATED\n"+
		"community   True    2          7         3          shared             sha256:cccccccccccc   ", "own         True    2          7         1          own ", "shared, shadowed")
	var listed []struct {
		Namespace, Name  string
		Shared, Shadowed bool
	}
	got := with("catalog", "list", "-A", "-o", "json")
	if err := json.Unmarshal([]byte(got.Out), &listed); err != nil || len(listed) != 3 {
		t.Errorf("%v: %s", err, got)
	}
	for _, l := range listed {
		if l.Shared != (l.Namespace == shared.Namespace) || l.Shadowed {
			t.Errorf("got %+v", l)
		}
	}
	c.Want(c.Satchel("catalog", "list", "-A"), kit.ExitOK, "NAMESPACE", shared.Namespace)
	c.Want(c.Satchel("catalog", "list", "-A", "--as", "jane"), kit.ExitError, "you may not list bundlecatalogs.satchel.dev in all namespaces")
	c.Want(c.Satchel("catalog", "list", "community"), kit.ExitError, "list takes no arguments")
}

// TestSharedCatalogNamespaceIsFound reads the flag of the source controller.
func TestSharedCatalogNamespaceIsFound(t *testing.T) {
	c := newCatalogCluster(t)
	before := shopCatalog(t)
	shared := c
	shared.Namespace = controlplane.NewNamespace(t, c.CP)
	shared.serve("community", "shop")
	t.Chdir(before)
	played := playedCluster{testCluster: c.testCluster}
	played.make(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: bundle-source-controller,
		labels: {app.kubernetes.io/part-of: satchel, app.kubernetes.io/name: bundle-source-controller}}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
		spec: {containers: [{name: manager, image: example.org/a, args: [--shared-catalog-namespace=` + shared.Namespace + `]}]}}}}`)
	c.Want(c.Satchel("resolve", "shop", "--system-namespace", c.Namespace), kit.ExitOK, "Catalog    community")
	c.Want(c.Satchel("catalog", "list", "--system-namespace", c.Namespace), kit.ExitOK, "shared")
}

// TestKindsOfCatalogs: the commands about all kinds.
func TestKindsOfCatalogs(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aCatalog())
	c.Want(c.Satchel("get", "catalogs"), kit.ExitOK, "NAME        READY   ORIGIN                  PACKAGES   BUNDLES   PRIORITY   AGE ", "community   True    latest@sha256:aaaaaaa   2          7         5 ", "serves 2 packages")
	c.Want(c.Satchel("get", "all", "-o", "name"), kit.ExitOK, "bundlecatalog.satchel.dev/community\n")
	c.Want(c.Satchel("get", "bcat", "-o", "wide"), kit.ExitOK, "image example.org/catalog:latest", "1h")
	c.Want(c.Satchel("status", "catalog", "community"), kit.ExitOK, "BundleCatalog "+c.Namespace+"/community: Ready\n", "image example.org/catalog:latest",
		"serves 2 packages with 7 bundles", "as sha256:cccccccccccc", "priority 5", "The source is checked again every 1h.")
	c.Want(c.Satchel("status", "catalog/community", "-o", "json"), kit.ExitOK, `"bundles": 7`)
	c.Want(c.Satchel("suspend", "catalog", "community"), kit.ExitOK, "BundleCatalog community: suspended")
	c.Want(c.Satchel("reconcile", "catalog", "community"), kit.ExitError, "is suspended")
	c.Want(c.Satchel("resume", "catalog", "community", "--wait=false"), kit.ExitOK, "BundleCatalog community: resumed")
	c.Want(c.Satchel("reconcile", "catalog", "community", "--wait=false"), kit.ExitOK, "BundleCatalog community: reconcile requested.")
	c.Want(c.Satchel("reconcile", "catalog", "community", "--retry"), kit.ExitError, "a catalog is always tried again")
	c.Want(c.Satchel("export", "catalog", "community"), kit.ExitOK, "kind: BundleCatalog", "example.org/catalog:latest")
	c.Want(c.Satchel("events", "catalog", "community"), kit.ExitOK, "No events")
	c.Want(c.Satchel("artifact", "catalog", "community"), kit.ExitError, "a BundleCatalog has no artifact")
	c.Want(c.Satchel("approve", "catalog", "community"), kit.ExitError, "a catalog has no plan")
	c.Want(c.Satchel("tree", "catalog", "community"), kit.ExitError, "tree is about BundleDeployments, not about a BundleCatalog")

	played := playedCluster{testCluster: c}
	played.make(`{apiVersion: v1, kind: Event, metadata: {name: one}, involvedObject: {apiVersion: satchel.dev/v1alpha1, kind: BundleCatalog, name: community, namespace: ` + c.Namespace + `},
		reason: CatalogServed, message: serves 2 packages, type: Normal, lastTimestamp: "2026-01-01T00:00:00Z"}`)
	played.make(`{apiVersion: v1, kind: Event, metadata: {name: two}, involvedObject: {apiVersion: satchel.dev/v1alpha1, kind: BundleCatalog, name: other, namespace: ` + c.Namespace + `},
		reason: CatalogServed, message: serves nothing, type: Normal, lastTimestamp: "2026-01-01T00:00:00Z"}`)
	got := c.Satchel("events", "catalog", "community")
	c.Want(got, kit.ExitOK, "serves 2 packages")
	if strings.Contains(got.Out, "serves nothing") {
		t.Errorf("events of another catalog: %s", got)
	}
}

// TestCatalogOfImage: an image is read with the label of its folder.
func TestCatalogOfImage(t *testing.T) {
	shopCatalog(t)
	shop, err := os.ReadFile(filepath.Join("shop", "shop.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	ref := pushCatalogImage(t, map[string]string{"configs/shop.yaml": string(shop), "bin/opm": "no FBC"}, map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"})
	local := satchel(t, "resolve", "shop", "--catalog=community=shop")
	got := satchel(t, "resolve", "shop", "--catalog=community="+ref)
	if got.Out != local.Out || got.Code != kit.ExitOK {
		t.Errorf("got %s, want %s", got, local)
	}
	got = satchel(t, "catalog", "search", "--catalog=community="+ref)
	if got.Out != "PACKAGE   CATALOG\nshop      community\n" {
		t.Errorf("got %s", got)
	}
	empty := pushCatalogImage(t, map[string]string{"bin/opm": "no FBC"}, map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"})
	if got := satchel(t, "resolve", "shop", "--catalog=community="+empty); got.Code != kit.ExitError || !strings.Contains(got.Err, "the image has no folder configs") {
		t.Errorf("got %s", got)
	}
	missing := ref[:strings.LastIndex(ref, "/")] + "/missing:v1"
	if got := satchel(t, "resolve", "shop", "--catalog=community="+missing); got.Code != kit.ExitError || !strings.Contains(got.Err, "cannot be fetched") {
		t.Errorf("got %s", got)
	}
}

// pushCatalogImage pushes an image with files and labels to a registry, and returns its reference.
func pushCatalogImage(t *testing.T, files, labels map[string]string) string {
	t.Helper()
	served := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(served.Close)
	parsed, err := name.ParseReference(strings.TrimPrefix(served.URL, "http://") + "/org/catalog:v1")
	if err != nil {
		t.Fatal(err)
	}
	content := map[string][]byte{}
	for path, text := range files {
		content[path] = []byte(text)
	}
	img, err := crane.Image(content)
	if err == nil {
		img, err = mutate.Config(img, v1.Config{Labels: labels})
	}
	if err == nil {
		err = remote.Write(parsed, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	return parsed.String()
}
