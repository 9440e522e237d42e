// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/cli/preview"
)

// Missing permissions are also found by dry runs of writes: these impersonate the deployment's user if
// the user may do so, and are sent without it otherwise.
func TestT24PreviewTriesAsTheAccount(t *testing.T) {
	for name, marks := range map[string]bool{"may name the deployment": true, "may only impersonate": false} {
		t.Run(name, func(t *testing.T) {
			var extra, as string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
					var review authorizationv1.SelfSubjectAccessReview
					_ = json.NewDecoder(r.Body).Decode(&review)
					review.Status.Allowed = review.Spec.ResourceAttributes.Resource == "serviceaccounts" || marks
					_ = json.NewEncoder(w).Encode(review)
					return
				}
				if r.Method == http.MethodPatch {
					as = r.Header.Get("Impersonate-User")
					for header, values := range r.Header {
						if strings.HasPrefix(header, "Impersonate-Extra-") {
							extra = values[0]
						}
					}
				}
				_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"demo"}}`))
			}))
			t.Cleanup(server.Close)
			config := &rest.Config{Host: server.URL}
			user, err := tenant.ForUser(config, tenant.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p := &preview.Previewer{Config: config, User: user, Target: user, Out: &preview.Preview{}, Deployment: &v1alpha1.BundleDeployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "podinfo"},
			}}
			client, why, err := p.AsAccount(t.Context(), "installer")
			if err != nil || client == nil {
				t.Fatalf("%q, %v", why, err)
			}
			maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
			if _, err := client.Merge(t.Context(), tenant.Ref{Resource: maps, Namespace: "demo", Name: "one"}, map[string]any{}, "m"); err != nil {
				t.Fatal(err)
			}
			if want := map[bool]string{true: "demo/podinfo"}[marks]; extra != want || as != "system:serviceaccount:demo:installer" {
				t.Errorf("written as %q for %q, want %q", as, extra, want)
			}
		})
	}
}
