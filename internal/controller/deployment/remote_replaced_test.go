// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"bytes"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/runtime/conditions"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/installation"
)

// T31: a kubeconfig that is replaced in its Secret under an approved plan needs an approval, and drift is not corrected through
// it until then. A renewed token of the same user needs none.
func TestT31KubeconfigIsReplaced(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, tc := range map[string]struct {
		account string
		change  func(cluster, user map[string]any)
		differs string // empty: no approval is needed
	}{
		"renewed token":  {"agent", nil, ""},
		"another user":   {"successor", nil, "differs in the user"},
		"another server": {"agent", func(cluster, _ map[string]any) { cluster["tls-server-name"] = "kubernetes.default.svc" }, "differs in the server"},
		"authorities": {"agent", func(cluster, _ map[string]any) {
			authority, _ := cluster["certificate-authority-data"].([]byte)
			cluster["certificate-authority-data"] = bytes.Repeat(append(bytes.TrimSpace(authority), '\n'), 2)
		}, "differs in the certificate authorities"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := r.newAbroad(t)
			if err := installation.Admin(t.Context(), r.admin, a.there, "successor"); err != nil {
				t.Fatal(err)
			}
			a.mayIdentify(t, "successor")
			a.store(t, map[string]string{"value": a.kubeconfig(t, "agent", nil)})
			published := r.publish(t, a.namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
			key := r.deploy(t, a.namespace, "app", both(a.goes, asking(v1alpha1.ApprovalManual)))
			_, digest := r.awaits(t, key, published.Revision, v1alpha1.ReasonApprovalRequired)
			r.decide(t, key, digest)
			was := r.ready(t, key, published.Revision)

			a.store(t, map[string]string{"value": a.kubeconfig(t, tc.account, tc.change)})
			if tc.differs == "" {
				r.handled(t, key)
				if now := r.ready(t, key, published.Revision); now.Status.Internal.Executed.Plan != was.Status.Internal.Executed.Plan {
					t.Error("another plan was carried out")
				}
				return
			}
			r.edit(t, key, asking(v1alpha1.ApprovalOnEscalation))
			d, next := r.awaits(t, key, published.Revision, v1alpha1.ReasonApprovalRequired)
			if message := conditions.GetMessage(d, v1alpha1.ApprovalPendingCondition); !strings.Contains(message, tc.differs) {
				t.Errorf("%q is not said: %s", tc.differs, message)
			}
			if next == digest {
				t.Error("the plan has the same digest")
			}
			r.delete(t, object("v1", "ConfigMap", a.there, "a"))
			r.handled(t, key)
			if r.value(t, t.Context(), a.there, "a") != "" {
				t.Error("drift was corrected through a kubeconfig that is not approved")
			}
			r.decide(t, key, next)
			r.until(t, key, "the approved plan is carried out", func(*v1alpha1.BundleDeployment) bool { return r.value(t, t.Context(), a.there, "a") == "one" })
			r.remove(t, key) // while the permissions exist
		})
	}
}

// T31: the same for the Secret that a ClusterProfile names.
func TestT31ClusterProfileIsReplaced(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.newAbroad(t)
	if err := installation.InstallClusterProfiles(t.Context(), r.admin); err != nil {
		t.Fatal(err)
	}
	if err := installation.Admin(t.Context(), r.admin, a.there, "successor"); err != nil {
		t.Fatal(err)
	}
	a.mayIdentify(t, "successor")
	a.grant(t, a.namespace, "profiles", rbacv1.PolicyRule{APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"clusterprofiles"}, Verbs: []string{"get"}})
	r.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "reads-profiles"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: a.namespace, Name: "installer"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "profiles"},
	})
	profile := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clusterManager": map[string]any{"name": "test"}}}}
	profile.SetAPIVersion("multicluster.x-k8s.io/v1alpha1")
	profile.SetKind("ClusterProfile")
	profile.SetNamespace(a.namespace)
	profile.SetName("prod")
	r.create(t, profile)
	text := a.kubeconfig(t, "agent", nil)
	a.store(t, map[string]string{"config": text})
	a.provides(t, profile, accessOf(t, text))
	published := r.publish(t, a.namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, a.namespace, "app", both(a.goes, asking(v1alpha1.ApprovalManual), func(d *v1alpha1.BundleDeployment) {
		d.Spec.Target.ClusterReference = v1alpha1.ClusterReference{ClusterProfileRef: &v1alpha1.ClusterProfileReference{Name: "prod"}}
	}))
	_, digest := r.awaits(t, key, published.Revision, v1alpha1.ReasonApprovalRequired)
	a.store(t, map[string]string{"config": a.kubeconfig(t, "successor", nil)})
	r.until(t, key, "the pending plan has another digest", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Plan != nil && d.Status.Plan.Digest != "" && d.Status.Plan.Digest != digest
	})
	r.remove(t, key) // while the permissions exist
}

// mayIdentify lets a ServiceAccount there read what identifies the cluster.
func (a *abroad) mayIdentify(t *testing.T, account string) {
	t.Helper()
	a.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: a.there + "-knows-" + account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: a.there + "-knows"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: a.there, Name: account}},
	})
}

// T31: where a plan needs an approval, a server that a replaced kubeconfig names is asked for the identity of its cluster only, until that is
// approved: neither the content of the bundle nor names of its objects are sent there.
func TestT31NothingIsSentToAnotherServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, tc := range map[string]struct {
		reason string
		mode   v1alpha1.ApprovalMode
		// replace makes the proxy the server of the deployment.
		replace func(t *testing.T, a *abroad, key client.ObjectKey, text string)
	}{
		"the Secret, Manual": {"the plan of v2 is pending", v1alpha1.ApprovalManual, func(t *testing.T, a *abroad, _ client.ObjectKey, text string) {
			a.store(t, map[string]string{"value": text})
		}},
		"the Secret, OnEscalation": {"v2 would go on by itself", v1alpha1.ApprovalOnEscalation, func(t *testing.T, a *abroad, _ client.ObjectKey, text string) {
			a.store(t, map[string]string{"value": text})
		}},
		"another key of it": {"the reference of the spec is another one", v1alpha1.ApprovalOnEscalation, func(t *testing.T, a *abroad, key client.ObjectKey, text string) {
			a.store(t, map[string]string{"value": a.kubeconfig(t, "agent", nil), "other": text})
			a.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Target.ClusterReference.KubeConfig.SecretRef.Key = "other" })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := r.newAbroad(t)
			a.store(t, map[string]string{"value": a.kubeconfig(t, "agent", nil)})
			first := r.publish(t, a.namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
			key := r.deploy(t, a.namespace, "app", both(a.goes, asking(tc.mode)))
			if tc.mode == v1alpha1.ApprovalManual {
				_, digest := r.awaits(t, key, first.Revision, v1alpha1.ReasonApprovalRequired)
				r.decide(t, key, digest)
			}
			r.ready(t, key, first.Revision)

			other := r.anotherServer(t)
			tc.replace(t, a, key, a.kubeconfig(t, "agent", func(cluster, _ map[string]any) {
				cluster["server"] = other.server.URL
				cluster["certificate-authority-data"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.server.Certificate().Raw})
			}))
			second := r.publish(t, a.namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two"), "secret.yaml": configMap("secret", "plan")})
			r.handled(t, key)
			r.handled(t, key) // with v2
			for _, path := range other.asked() {
				if path != "GET /api/v1/namespaces/kube-system" {
					t.Errorf("%s: asked of a server that is not approved: %s", tc.reason, path)
				}
			}
			var digest string
			r.until(t, key, "the server waits for an approval", func(d *v1alpha1.BundleDeployment) bool {
				if d.Status.Plan != nil {
					digest = d.Status.Plan.Digest
				}
				return strings.Contains(conditions.GetMessage(d, v1alpha1.ApprovalPendingCondition), "only the identity of the cluster is read there")
			})
			r.decide(t, key, digest)
			if tc.mode == v1alpha1.ApprovalManual {
				r.until(t, key, "the plan waits for an approval", func(d *v1alpha1.BundleDeployment) bool {
					return d.Status.Plan != nil && d.Status.Plan.Revision == second.Revision && d.Status.Plan.Digest != digest && d.Status.Plan.Create == 1
				})
				_, next := r.awaits(t, key, second.Revision, v1alpha1.ReasonApprovalRequired)
				r.decide(t, key, next)
			}
			r.ready(t, key, second.Revision)
			if r.value(t, t.Context(), a.there, "a") != "two" || len(other.asked()) < 5 {
				t.Errorf("the approved server was not used: %v", other.asked())
			}
			r.remove(t, key)
		})
	}
}

// anotherServer leads to the API server under another address, and notes what it is asked.
type anotherServer struct {
	server *httptest.Server
	mu     sync.Mutex
	paths  []string
}

func (r *rig) anotherServer(t *testing.T) *anotherServer {
	t.Helper()
	config := rest.AnonymousClientConfig(r.cp.RESTConfig())
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	upstream, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	o := &anotherServer{}
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(upstream) }}
	o.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		o.mu.Lock()
		o.paths = append(o.paths, request.Method+" "+request.URL.Path)
		o.mu.Unlock()
		proxy.ServeHTTP(w, request)
	}))
	o.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	o.server.StartTLS()
	t.Cleanup(func() { o.server.CloseClientConnections(); o.server.Close() })
	return o
}

// asked is what the server was asked so far.
func (o *anotherServer) asked() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.paths)
}
