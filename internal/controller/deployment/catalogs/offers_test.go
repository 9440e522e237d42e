// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/artifact/packages"
)

// C50: the packages that a namespace sees, by priority. A catalog that does not answer, catalogs of other namespaces and names that
// are no packages are left out.
func TestC50Offers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "/broken/"):
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.Method == http.MethodHead:
			if r.URL.Query().Get("package") != "cache" {
				w.WriteHeader(http.StatusNoContent)
			}
		case r.URL.Query().Get("kind") == "Cache":
			_, _ = w.Write([]byte(`{"name":"$(reboot)"}` + "\n" + `{"name":"` + strings.Split(r.URL.Path, "/")[2] + `-cache"}` + "\n"))
		}
	}))
	t.Cleanup(server.Close)
	reader, err := packages.Open(packages.Options{Client: server.Client(), ServerURLs: []string{server.URL}, CacheDir: t.TempDir(), Parse: parse})
	if err != nil {
		t.Fatal(err)
	}
	cache := &objects{catalogs: map[types.NamespacedName]v1alpha1.BundleCatalog{}}
	for name, priority := range map[string]int32{"team/community": 0, "team/own": 10, "team/broken": 20, "shared/community": 5, "shared/upstream": 5, "other/private": 30} {
		c := v1alpha1.BundleCatalog{}
		c.Namespace, c.Name, _ = strings.Cut(name, "/")
		c.Spec.Priority = priority
		c.Status.Content = &v1alpha1.CatalogContent{Digest: "sha256:" + name}
		c.Status.URLs = &v1alpha1.CatalogURLs{Base: server.URL + "/catalogs/" + name}
		cache.catalogs[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] = c
	}
	st := &Stage{Reader: cache, Packages: reader, Shared: "shared"}
	kind := requirement.Need{Kind: schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Cache"}}
	named, absent := requirement.Need{Package: "cache"}, requirement.Need{Package: "absent"}
	want := map[requirement.Need][]requirement.Offer{
		kind:  {{Package: "team-cache", Catalog: "own"}, {Package: "shared-cache", Catalog: "upstream"}, {Package: "team-cache", Catalog: "community"}},
		named: {{Package: "cache", Catalog: "own"}, {Package: "cache", Catalog: "upstream"}, {Package: "cache", Catalog: "community"}},
	}
	if diff := cmp.Diff(want, st.Offers(t.Context(), "team", []requirement.Need{absent, named, kind})); diff != "" {
		t.Errorf("offers (-want +got):\n%s", diff)
	}
	server.Close()
	fresh := requirement.Need{Package: "fresh"}
	if got := st.Offers(t.Context(), "team", []requirement.Need{fresh}); len(got) > 0 {
		t.Errorf("without a server there are %v", got)
	}
}
