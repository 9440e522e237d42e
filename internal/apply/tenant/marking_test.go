// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// extraHeader is how client-go and the API server write the extra satchel.dev/deployment.
const extraHeader = "Impersonate-Extra-Satchel.dev%2fdeployment"

// witness is an API server that records the extra of each request, and says whether the extra may be
// impersonated.
type witness struct {
	mu       sync.Mutex
	requests []string // "METHOD path extra"
	reviews  []string // who asked for a review
	permits  bool
}

func (w *witness) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	body := map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"name": "one"}}
	if strings.HasSuffix(r.URL.Path, "selfsubjectaccessreviews") {
		w.reviews = append(w.reviews, r.Header.Get("Impersonate-User"))
		body = map[string]any{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": map[string]any{"allowed": w.permits}}
	} else {
		w.requests = append(w.requests, strings.TrimSpace(r.Method+" "+strings.Join(r.Header.Values(extraHeader), ",")))
	}
	answer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(answer).Encode(body)
}

// writeAll sends each kind of write, and two reads.
func writeAll(t *testing.T, c *tenant.Client) {
	t.Helper()
	ctx := t.Context()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	for name, call := range map[string]func() error{
		"apply": func() error { _, err := c.Apply(ctx, one, object, tenant.ApplyOptions{Manager: "m"}); return err },
		"dry run": func() error {
			_, err := c.Apply(ctx, one, object, tenant.ApplyOptions{Manager: "m", DryRun: true})
			return err
		},
		"merge":  func() error { _, err := c.Merge(ctx, one, map[string]any{}, "m"); return err },
		"status": func() error { _, err := c.MergeStatus(ctx, one, map[string]any{}, "m"); return err },
		"delete": func() error { _, err := c.Delete(ctx, one, "uid", "1"); return err },
		"get":    func() error { _, err := c.Get(ctx, one); return err },
		"look":   func() error { _, err := c.Metadata(ctx, one); return err },
	} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each write as an account names its deployment; reads do not, so that deployments
// share their watches. One account needs one client, however many deployments it has.
func TestT24WritesNameTheDeployment(t *testing.T) {
	w := &witness{}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	pool, err := tenant.NewPool(&rest.Config{Host: server.URL}, tenant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	account := clientOf(t, pool, "installer")
	if _, err := account.Merge(t.Context(), one, map[string]any{}, "m"); err == nil {
		t.Error("written for no deployment")
	}
	writeAll(t, account.For("app"))
	slices.Sort(w.requests)
	want := []string{"DELETE shop/app", "GET", "GET", "PATCH shop/app", "PATCH shop/app", "PATCH shop/app", "PATCH shop/app"}
	if !slices.Equal(w.requests, want) {
		t.Errorf("got %q, want %q", w.requests, want)
	}
	other := account.For("other")
	if _, err := other.Delete(t.Context(), one, "", ""); err != nil || w.requests[len(w.requests)-1] != "DELETE shop/other" {
		t.Errorf("%v %v", w.requests, err)
	}
	if other.Requests() != account.Requests() || other.Identity() != account.Identity() || other.Kinds() != account.Kinds() {
		t.Error("the clients of one account share nothing")
	}
}

// A remote cluster is asked, as the user of the kubeconfig and once, whether that user may impersonate
// the extra; if not, everything works without it. The user of a kubeconfig does not impersonate.
func TestT24RemoteWritesNameTheDeploymentWherePermitted(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		account string
		permits bool
		extra   string
		reviews int
	}{
		"permitted":     {"policies of there see it", "installer", true, " shop/app", 1},
		"not permitted": {"all works without it", "installer", false, "", 1},
		"the user":      {"an extra without impersonation is refused", "", true, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := &witness{permits: tc.permits}
			server := httptest.NewTLSServer(w)
			t.Cleanup(server.Close)
			client := remoteClient(t, tenant.NewRemotes(dialAnywhere, tenant.Options{}), kubeconfigOf(t, server, "a"), "shop", tc.account)
			writeAll(t, client.For("app"))
			for _, request := range w.requests {
				if method, _, _ := strings.Cut(request, " "); method != http.MethodGet && request != method+tc.extra {
					t.Errorf("%s: %q", tc.reason, request)
				}
			}
			if len(w.reviews) != tc.reviews || slices.ContainsFunc(w.reviews, func(user string) bool { return user != "" }) {
				t.Errorf("asked as %q, want %d times as the user", w.reviews, tc.reviews)
			}
		})
	}
}
