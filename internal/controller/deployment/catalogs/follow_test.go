// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact/packages"
	"github.com/satchel-dev/satchel/internal/catalog/lean"
)

// objects are what a cache holds.
type objects struct {
	catalogs    map[types.NamespacedName]v1alpha1.BundleCatalog
	deployments []v1alpha1.BundleDeployment
}

func (o *objects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	found, ok := o.catalogs[key]
	if c, is := into.(*v1alpha1.BundleCatalog); ok && is {
		found.DeepCopyInto(c)
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "bundlecatalogs"}, key.Name)
}

func (o *objects) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	var within client.ListOptions
	within.ApplyOptions(options)
	switch list := into.(type) {
	case *v1alpha1.BundleDeploymentList:
		for _, d := range o.deployments {
			if within.Namespace == "" || within.Namespace == d.Namespace {
				list.Items = append(list.Items, d)
			}
		}
	case *v1alpha1.BundleCatalogList:
		for _, c := range o.catalogs {
			if within.Namespace == "" || within.Namespace == c.Namespace {
				list.Items = append(list.Items, c)
			}
		}
	}
	return nil
}

// C49: of 1,000 deployments, a new catalog wakes those of the package that changed; a new priority and the deletion of the catalog
// wake all that see it.
func TestC49OnlyTheDeploymentsOfAMovedPackageWake(t *testing.T) {
	contents := map[string]string{}
	for i := range 10 {
		contents[fmt.Sprintf("p%d", i)] = fmt.Sprintf(`{"schema":"olm.channel","package":"p%d","name":"stable","entries":[]}`+"\n", i)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content := contents[r.URL.Query().Get("package")]
		w.Header().Set("Etag", fmt.Sprintf(`"sha256:%x"`, sha256.Sum256([]byte(content))))
		_, _ = w.Write([]byte(content))
	}))
	t.Cleanup(server.Close)
	reader, err := packages.Open(packages.Options{Client: server.Client(), ServerURLs: []string{server.URL}, CacheDir: t.TempDir(), Parse: parse})
	if err != nil {
		t.Fatal(err)
	}
	key := types.NamespacedName{Namespace: "team", Name: "community"}
	cache := &objects{catalogs: map[types.NamespacedName]v1alpha1.BundleCatalog{}}
	for i := range 1000 {
		d := v1alpha1.BundleDeployment{}
		d.Namespace, d.Name = "team", fmt.Sprintf("d%d", i)
		d.Spec.Catalog = &v1alpha1.CatalogPackage{Package: fmt.Sprintf("p%d", i%10)}
		if i%100 == 1 {
			d.Spec.Catalog.Catalogs = []string{"other"}
		}
		cache.deployments = append(cache.deployments, d)
	}
	var woken []types.NamespacedName
	follower := &Follower{Reader: cache, Packages: reader, Wake: func(key types.NamespacedName, _ time.Duration) { woken = append(woken, key) }}
	reconcile := func(content string, priority int32, want int) {
		t.Helper()
		if content == "" {
			delete(cache.catalogs, key)
		} else {
			c := v1alpha1.BundleCatalog{}
			c.Namespace, c.Name, c.Spec.Priority = key.Namespace, key.Name, priority
			c.Status.Content = &v1alpha1.CatalogContent{Digest: content}
			c.Status.URLs = &v1alpha1.CatalogURLs{Base: server.URL + "/catalogs/team/community"}
			cache.catalogs[key] = c
		}
		woken = nil
		if _, err := follower.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		seen := map[types.NamespacedName]bool{}
		for _, one := range woken {
			seen[one] = true
		}
		if len(seen) != want {
			t.Errorf("content %q, priority %d: %d deployments wake, want %d", content, priority, len(seen), want)
		}
	}
	reconcile("one", 0, 990) // new
	reconcile("one", 0, 0)
	reconcile("two", 0, 0) // of other packages
	contents["p3"] += `{"schema":"olm.channel","package":"p3","name":"fast","entries":[]}` + "\n"
	reconcile("three", 0, 100)
	// A deployment that looked at the new content first does not keep the others asleep.
	contents["p4"] += `{"schema":"olm.channel","package":"p4","name":"fast","entries":[]}` + "\n"
	found, err := reader.Read(t.Context(), packages.Catalog{Namespace: "team", Name: "community", BaseURL: server.URL + "/catalogs/team/community", Content: "four"}, "p4")
	if err != nil {
		t.Fatal(err)
	}
	follower.Saw(key, "p4", found.Digest)
	reconcile("four", 0, 100)
	reconcile("four", 5, 990)
	reconcile("", 0, 990)
}

// C52, C54: a namespace sees its own catalogs and the shared ones; of two with one name, its own. Those of others are not seen.
func TestC52VisibleCatalogs(t *testing.T) {
	cache := &objects{catalogs: map[types.NamespacedName]v1alpha1.BundleCatalog{}}
	for _, key := range []types.NamespacedName{{Namespace: "team", Name: "own"}, {Namespace: "team", Name: "community"}, {Namespace: "shared", Name: "community"}, {Namespace: "shared", Name: "certified"}, {Namespace: "other", Name: "private"}} {
		c := v1alpha1.BundleCatalog{}
		c.Namespace, c.Name, c.Labels = key.Namespace, key.Name, map[string]string{"in": key.Namespace}
		cache.catalogs[key] = c
	}
	for name, tc := range map[string]struct {
		catalog v1alpha1.CatalogPackage
		want    []string
		reason  bool
	}{
		"all":                  {want: []string{"shared/certified", "team/community", "team/own"}},
		"by name":              {catalog: v1alpha1.CatalogPackage{Catalogs: []string{"certified"}}, want: []string{"shared/certified"}},
		"of another namespace": {catalog: v1alpha1.CatalogPackage{Catalogs: []string{"private"}}, reason: true},
	} {
		d := &v1alpha1.BundleDeployment{}
		d.Namespace, d.Spec.Catalog = "team", &tc.catalog
		stage := Stage{Reader: cache, Shared: "shared"}
		found, err := stage.visible(t.Context(), d)
		var got []string
		for _, c := range found {
			got = append(got, c.Namespace+"/"+c.Name)
		}
		if (err != nil) != tc.reason || !slices.Equal(got, tc.want) {
			t.Errorf("%s: sees %v, %v; want %v", name, got, err, tc.want)
		}
	}
}

// parse parses the blobs of a package in this process.
func parse(_ context.Context, _, name string, blobs *os.File) (lean.Parsed, error) {
	return lean.Parse(name, blobs)
}
