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
	c.t.Helper()
	draft, err := c.store.NewDraft()
	if err != nil {
		c.t.Fatal(err)
	}
	defer draft.Discard()
	x, err := index.Build(os.DirFS(folder), ".", fbc.DefaultLimits(), draft.File(index.AllFile), draft.File(index.LeanFile))
	if err != nil {
		c.t.Fatal(err)
	}
	lean, err := draft.OpenLean()
	if err != nil {
		c.t.Fatal(err)
	}
	defer lean.Close()
	if err := x.Summarize(lean, draft.File(index.ListFile)); err != nil {
		c.t.Fatal(err)
	}
	encoded, err := x.Encode()
	if err == nil {
		_, err = draft.File(index.IndexFile).Write(encoded)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.store.Publish(types.NamespacedName{Namespace: c.namespace, Name: name}, draft, nil); err != nil {
		c.t.Fatal(err)
	}
	c.create(aCatalog(append([]func(*v1alpha1.BundleCatalog){func(o *v1alpha1.BundleCatalog) {
		o.Name = name
		o.Spec.Priority = 0
		o.Status.URLs.Base = c.url + catalogs.Prefix + c.namespace + "/" + name
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
		if local.out+local.err == "" {
			t.Fatalf("%q says nothing", args)
		}
		if named := c.satchel(append(slices.Clone(args), "--catalog=community")...); named != local {
			t.Errorf("%q: got %s, want %s", args, named, local)
		}
		if all := c.satchel(args...); all != local {
			t.Errorf("%q without --catalog: got %s, want %s", args, all, local)
		}
	}
}

// TestCatalogsOfCluster: which catalogs are read, and what is said about those that cannot be.
func TestCatalogsOfCluster(t *testing.T) {
	c := newCatalogCluster(t)
	shopCatalog(t)
	c.want(c.satchel("resolve", "shop"), kit.ExitError, "sees no BundleCatalog that serves something")
	c.serve("community", "shop")
	c.create(aCatalog(func(o *v1alpha1.BundleCatalog) {
		o.Name = "broken"
		o.Status.Content, o.Status.URLs = nil, nil
		o.Status.Conditions = []metav1.Condition{no(meta.ReadyCondition, v1alpha1.ReasonUnauthorized, "the registry refuses")}
	}))
	c.want(c.satchel("resolve", "shop"), kit.ExitOK, "Catalog    community", "/broken is left out, since it serves nothing")
	c.want(c.satchel("resolve", "shop", "--catalog", "broken"), kit.ExitError, "/broken serves nothing: the registry refuses")
	c.want(c.satchel("resolve", "shop", "--catalog", "comunity"), kit.ExitError, `there is no BundleCatalog "comunity"`, "community", "--catalog comunity=PATH")
	c.want(c.satchel("resolve", "shop", "--catalog", "community", "--catalog", "mirror=mirror.yaml,priority=1"), kit.ExitOK, "Catalog    mirror")
	c.want(c.satchel("resolve", "shop", "--as", "jane"), kit.ExitError, "you may not list bundlecatalogs.satchel.dev in the namespace")
	c.want(c.satchel("resolve", "shop", "--catalog", "community", "--as", "jane"), kit.ExitError, "you may not list bundlecatalogs.satchel.dev in the namespace")

	status := http.StatusUnauthorized
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	c.moved(refusing.URL)
	c.want(c.satchel("resolve", "shop", "--catalog", "community"), kit.ExitError, "accepts only tokens of ServiceAccounts")
	status = http.StatusNotFound
	c.want(c.satchel("catalog", "search", "shop", "--catalog", "community"), kit.ExitError, "the server does not have the BundleCatalog")
	status = http.StatusServiceUnavailable
	c.want(c.satchel("resolve", "shop", "--catalog", "community"), kit.ExitError, "answers 503 Service Unavailable")
	refusing.Close()
	c.want(c.satchel("resolve", "shop", "--catalog", "community"), kit.ExitError, "connection refused", "the command check says whether")
}

// moved writes another server into the status of the catalog.
func (c catalogCluster) moved(url string) {
	c.t.Helper()
	var o v1alpha1.BundleCatalog
	if err := c.client.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: "community"}, &o); err != nil {
		c.t.Fatal(err)
	}
	o.Status.URLs.Base = url
	if err := c.client.Status().Update(c.t.Context(), &o); err != nil {
		c.t.Fatal(err)
	}
}

// TestSharedCatalogs: a namespace sees those of the shared one, behind its own.
func TestSharedCatalogs(t *testing.T) {
	c := newCatalogCluster(t)
	before := shopCatalog(t)
	shared := c
	shared.namespace = controlplane.NewNamespace(t, c.cp)
	shared.serve("community", "shop", func(o *v1alpha1.BundleCatalog) { o.Spec.Priority = 3 })
	shared.serve("own", "shop", func(o *v1alpha1.BundleCatalog) { o.Spec.Priority = 9 })
	c.serve("own", "shop", func(o *v1alpha1.BundleCatalog) { o.Spec.Priority = 1 })
	t.Chdir(before)

	with := func(args ...string) outcome {
		return c.satchel(append(args, "--shared-catalog-namespace", shared.namespace)...)
	}
	c.want(with("resolve", "shop"), kit.ExitOK, "Catalog    community", "catalog own: 6 bundles", "priority 1")
	c.want(with("resolve", "shop", "--catalog", "own"), kit.ExitOK, "Catalog    own", "priority 1")
	c.want(with("resolve", "shop", "--catalog", "community"), kit.ExitOK, "priority 3")
	c.want(c.satchel("resolve", "shop", "--catalog", "community"), kit.ExitError, `there is no BundleCatalog "community"`)
	c.want(with("catalog", "list"), kit.ExitOK, "NAME        READY   PACKAGES   BUNDLES   PRIORITY   SCOPE              DIGEST                UPDATED\n"+
		"community   True    2          7         3          shared             sha256:cccccccccccc   ", "own         True    2          7         1          own ", "shared, shadowed")
	var listed []struct {
		Namespace, Name  string
		Shared, Shadowed bool
	}
	got := with("catalog", "list", "-A", "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &listed); err != nil || len(listed) != 3 {
		t.Errorf("%v: %s", err, got)
	}
	for _, l := range listed {
		if l.Shared != (l.Namespace == shared.namespace) || l.Shadowed {
			t.Errorf("got %+v", l)
		}
	}
	c.want(c.satchel("catalog", "list", "-A"), kit.ExitOK, "NAMESPACE", shared.namespace)
	c.want(c.satchel("catalog", "list", "-A", "--as", "jane"), kit.ExitError, "you may not list bundlecatalogs.satchel.dev in all namespaces")
	c.want(c.satchel("catalog", "list", "community"), kit.ExitError, "list takes no arguments")
}

// TestSharedCatalogNamespaceIsFound reads the flag of the source controller.
func TestSharedCatalogNamespaceIsFound(t *testing.T) {
	c := newCatalogCluster(t)
	before := shopCatalog(t)
	shared := c
	shared.namespace = controlplane.NewNamespace(t, c.cp)
	shared.serve("community", "shop")
	t.Chdir(before)
	played := playedCluster{testCluster: c.testCluster}
	played.make(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: bundle-source-controller,
		labels: {app.kubernetes.io/part-of: satchel, app.kubernetes.io/name: bundle-source-controller}}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
		spec: {containers: [{name: manager, image: example.org/a, args: [--shared-catalog-namespace=` + shared.namespace + `]}]}}}}`)
	c.want(c.satchel("resolve", "shop", "--system-namespace", c.namespace), kit.ExitOK, "Catalog    community")
	c.want(c.satchel("catalog", "list", "--system-namespace", c.namespace), kit.ExitOK, "shared")
}

// TestKindsOfCatalogs: the commands about all kinds.
func TestKindsOfCatalogs(t *testing.T) {
	c := newTestCluster(t)
	c.create(aCatalog())
	c.want(c.satchel("get", "catalogs"), kit.ExitOK, "NAME        READY   ORIGIN                  PACKAGES   BUNDLES   PRIORITY   AGE ", "community   True    latest@sha256:aaaaaaa   2          7         5 ", "serves 2 packages")
	c.want(c.satchel("get", "all", "-o", "name"), kit.ExitOK, "bundlecatalog.satchel.dev/community\n")
	c.want(c.satchel("get", "bcat", "-o", "wide"), kit.ExitOK, "image example.org/catalog:latest", "1h")
	c.want(c.satchel("status", "catalog", "community"), kit.ExitOK, "BundleCatalog "+c.namespace+"/community: Ready\n", "image example.org/catalog:latest",
		"serves 2 packages with 7 bundles", "as sha256:cccccccccccc", "priority 5", "The source is checked again every 1h.")
	c.want(c.satchel("status", "catalog/community", "-o", "json"), kit.ExitOK, `"bundles": 7`)
	c.want(c.satchel("suspend", "catalog", "community"), kit.ExitOK, "BundleCatalog community: suspended")
	c.want(c.satchel("reconcile", "catalog", "community"), kit.ExitError, "is suspended")
	c.want(c.satchel("resume", "catalog", "community", "--wait=false"), kit.ExitOK, "BundleCatalog community: resumed")
	c.want(c.satchel("reconcile", "catalog", "community", "--wait=false"), kit.ExitOK, "BundleCatalog community: reconcile requested.")
	c.want(c.satchel("reconcile", "catalog", "community", "--retry"), kit.ExitError, "a catalog is always tried again")
	c.want(c.satchel("export", "catalog", "community"), kit.ExitOK, "kind: BundleCatalog", "example.org/catalog:latest")
	c.want(c.satchel("events", "catalog", "community"), kit.ExitOK, "No events")
	c.want(c.satchel("artifact", "catalog", "community"), kit.ExitError, "a BundleCatalog has no artifact")
	c.want(c.satchel("approve", "catalog", "community"), kit.ExitError, "a catalog has no plan")
	c.want(c.satchel("tree", "catalog", "community"), kit.ExitError, "tree is about BundleDeployments, not about a BundleCatalog")

	played := playedCluster{testCluster: c}
	played.make(`{apiVersion: v1, kind: Event, metadata: {name: one}, involvedObject: {apiVersion: satchel.dev/v1alpha1, kind: BundleCatalog, name: community, namespace: ` + c.namespace + `},
		reason: CatalogServed, message: serves 2 packages, type: Normal, lastTimestamp: "2026-01-01T00:00:00Z"}`)
	played.make(`{apiVersion: v1, kind: Event, metadata: {name: two}, involvedObject: {apiVersion: satchel.dev/v1alpha1, kind: BundleCatalog, name: other, namespace: ` + c.namespace + `},
		reason: CatalogServed, message: serves nothing, type: Normal, lastTimestamp: "2026-01-01T00:00:00Z"}`)
	got := c.satchel("events", "catalog", "community")
	c.want(got, kit.ExitOK, "serves 2 packages")
	if strings.Contains(got.out, "serves nothing") {
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
	if got.out != local.out || got.code != kit.ExitOK {
		t.Errorf("got %s, want %s", got, local)
	}
	got = satchel(t, "catalog", "search", "--catalog=community="+ref)
	if got.out != "PACKAGE   CATALOG\nshop      community\n" {
		t.Errorf("got %s", got)
	}
	empty := pushCatalogImage(t, map[string]string{"bin/opm": "no FBC"}, map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"})
	if got := satchel(t, "resolve", "shop", "--catalog=community="+empty); got.code != kit.ExitError || !strings.Contains(got.err, "the image has no folder configs") {
		t.Errorf("got %s", got)
	}
	missing := ref[:strings.LastIndex(ref, "/")] + "/missing:v1"
	if got := satchel(t, "resolve", "shop", "--catalog=community="+missing); got.code != kit.ExitError || !strings.Contains(got.err, "cannot be fetched") {
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
