// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/check"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
)

func TestCheckOutput(t *testing.T) {
	r := check.Report{Namespace: kit.SystemNamespace, Checks: []check.Finding{
		{Check: "Kubernetes", State: check.CheckOK, Detail: "v1.36.3"},
		{Check: "Network policies", State: check.CheckWarning, Detail: "there is none", Hint: "Apply config/network."},
		{Check: "Controller x", State: check.CheckFailed, Detail: "Pod a: " + steering + "\nsecond line", Hint: "See its log."},
		{Check: "Leaders", State: check.CheckUnknown, Detail: "the leases cannot be listed: you may not"},
	}}
	text := r.Print(printer.Style{})
	golden(t, "check/text", text)
	if hidden := hiddenIn(text); hidden != "" || !r.Broken() {
		t.Error(hidden)
	}
	if r.Checks = r.Checks[:2]; r.Broken() {
		t.Error("a warning breaks nothing")
	}
}

// TestDefinitionsAsCommitted compares the CRDs of the repository, and modified ones, with the Go types.
func TestDefinitionsAsCommitted(t *testing.T) {
	for _, known := range check.DefinedTypes {
		text, err := os.ReadFile("../../config/crd/bases/satchel.dev_" + known.Resource + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		crd := parse(t, string(text))
		if got := check.CRDProblems(crd, known.Spec, known.Status); len(got) != 1 || got[0].Text != "is not established" {
			t.Errorf("%s: %v", known.Resource, got)
		}
		crd.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
		if got := check.CRDProblems(crd, known.Spec, known.Status); len(got) != 0 {
			t.Errorf("%s: %v", known.Resource, got)
		}
	}
	crd := parse(t, `
status: {conditions: [{type: Established, status: "True"}]}
spec: {versions: [{name: v1alpha1, served: true, schema: {openAPIV3Schema: {properties: {
  spec: {properties: {deployment: {}, decision: {}, reason: {}, expirationTime: {}, colour: {}}}, status: {properties: {consumedTime: {}}}}}}}]}`)
	approvals := check.DefinedTypes[2]
	var got []string
	for _, d := range check.CRDProblems(crd, approvals.Spec, approvals.Status) {
		if strings.HasPrefix(d.Text, "is older than this program: it lacks spec.plan") && d.State == check.CheckFailed || strings.Contains(d.Text, "spec.colour") && d.State == check.CheckWarning {
			got = append(got, d.Text)
		}
	}
	if diff := cmp.Diff([]string{"is newer than this program, which does not know spec.colour", "is older than this program: it lacks spec.plan"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	versions[0].(map[string]any)["served"] = false
	_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
	if got := check.CRDProblems(crd, approvals.Spec, approvals.Status); len(got) != 1 || got[0].Text != "does not serve v1alpha1" {
		t.Errorf("got %v", got)
	}
}

func TestSharedName(t *testing.T) {
	for name, tc := range map[string]struct {
		resource metav1.APIResource
		want     string
	}{
		"Fleet":       {metav1.APIResource{Name: "bundledeployments", Kind: "BundleDeployment"}, "bundledeployments"},
		"short name":  {metav1.APIResource{Name: "beds", Kind: "Bed", ShortNames: []string{"bdep"}}, "bdep"},
		"subresource": {metav1.APIResource{Name: "bundledeployments/status", Kind: "BundleDeployment"}, ""},
		"other":       {metav1.APIResource{Name: "bundles", Kind: "Bundle"}, ""},
	} {
		if got := check.SharedName(tc.resource); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestVersionTag(t *testing.T) {
	for image, want := range map[string]string{
		"example.org/a:v1.2.3": "v1.2.3", "example.org/a:v1.2.3@" + digestA: "v1.2.3", "example.org/a:dev": "", "example.org:5000/a": "", "a": "", "": "",
		"example.org:v1/a": "",
	} {
		if got := check.VersionTag(image); got != want {
			t.Errorf("versionTag(%q) = %q, want %q", image, got, want)
		}
	}
}

func TestLeader(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, holder string
		age            time.Duration
		want           check.State
	}{
		"leads":         {"", "pod-1", 5 * time.Second, check.CheckOK},
		"skewed clocks": {"renewed in the future", "pod-1", -10 * time.Second, check.CheckOK},
		"gone":          {"not renewed for long", "pod-1", 5 * time.Minute, check.CheckFailed},
		"released":      {"released, and without a new holder", "", time.Second, check.CheckFailed},
	} {
		e := &check.Examiner{Now: noon}
		e.Leader(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}, "spec": map[string]any{
			"holderIdentity": tc.holder, "leaseDurationSeconds": int64(35), "renewTime": noon.Add(-tc.age).Format(time.RFC3339Nano)}}})
		if got := e.Report.Checks[0]; got.State != tc.want {
			t.Errorf("%s (%s): %+v", name, tc.reason, got)
		}
	}
}

// system installs objects that look like Satchel into the namespace; kwok runs the Pods.
func (c testCluster) system() {
	c.T.Helper()
	for _, name := range check.ControllerNames {
		labels := "labels: {app.kubernetes.io/part-of: satchel, app.kubernetes.io/name: " + name + "}"
		c.object("", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: `+name+`, `+labels+`}
spec:
  selector: {matchLabels: {app.kubernetes.io/name: `+name+`}}
  template:
    metadata: {`+labels+`}
    spec: {containers: [{name: manager, image: "example.org/`+name+`:v0.1.0", env: [{name: PASSWORD, value: seeded-in-env}]}]}`)
		c.object("", `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: `+name+`}
spec: {holderIdentity: pod-1, leaseDurationSeconds: 35, renewTime: "`+time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")+`"}`)
	}
	c.object("", `{apiVersion: v1, kind: Service, metadata: {name: bundle-source-controller, labels: {app.kubernetes.io/part-of: satchel}}, spec: {selector: {a: b}, ports: [{name: http, port: 80}]}}`)
	c.object("", `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: default-deny}, spec: {podSelector: {}}}`)
	c.object("", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: `+check.DeploymentAccount+`}}`)
}

// checks runs check until a Deployment's Pods are up, and returns the findings by name.
func (c testCluster) checks(settled func(map[string]check.Finding) bool, args ...string) (map[string]check.Finding, outcome) {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(c.T.Context(), time.Minute)
	defer cancel()
	for {
		got := c.Satchel(append([]string{"check", "--system-namespace", c.Namespace, "-o", "json"}, args...)...)
		var report check.Report
		if err := json.Unmarshal([]byte(got.Out), &report); err != nil {
			c.T.Fatalf("%v: %s", err, got)
		}
		found := map[string]check.Finding{}
		for _, f := range report.Checks {
			found[f.Check] = f
		}
		if settled(found) || ctx.Err() != nil {
			return found, got
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func TestCheck(t *testing.T) {
	c := newTestCluster(t)
	now := func(map[string]check.Finding) bool { return true }
	states := func(found map[string]check.Finding, want map[string]check.State) {
		t.Helper()
		for name, state := range want {
			if found[name].State != state {
				t.Errorf("%s: %+v, want %s", name, found[name], state)
			}
		}
	}
	found, got := c.checks(now)
	states(found, map[string]check.State{"Kubernetes": check.CheckOK, "CRDs": check.CheckOK, "Controllers": check.CheckFailed, "Leaders": check.CheckWarning,
		"Artifact server": check.CheckFailed, "Impersonation": check.CheckWarning, "Network policies": check.CheckWarning})
	if got.Code != kit.ExitNo {
		t.Error(got)
	}

	c.object("", `{apiVersion: v1, kind: Secret, metadata: {name: `+check.KeysSecret+`}}`)
	label := func(value string) {
		t.Helper()
		c.change(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}, `{"metadata":{"labels":{"satchel.dev/approval":`+value+`}}}`)
	}
	label(`"required"`)
	c.object("", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: approving}}`)
	c.object("", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: harmless}}`)
	c.object("", `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: approving}
rules: [{apiGroups: [satchel.dev], resources: [bundleapprovals], verbs: [create]}]`)
	c.object("", `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: approving}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: approving}
subjects: [{kind: ServiceAccount, name: approving, namespace: `+c.Namespace+`}]`)
	found, _ = c.checks(now)
	states(found, map[string]check.State{"Keys": check.CheckWarning, "Approvers": check.CheckWarning})
	if text := found["Approvers"].Detail; !strings.Contains(text, c.Namespace+"/approving may create bundleapprovals.satchel.dev in "+c.Namespace) || strings.Contains(text, "/harmless") {
		t.Errorf("approvers: %s", text)
	}
	label("null")

	c.system()
	c.Create(aDeployment(with(no(meta.ReadyCondition, v1alpha1.ReasonHealthFailed, "Pod x: no image"))))
	found, _ = c.checks(func(f map[string]check.Finding) bool {
		return f["Controller "+check.DeploymentAccount].State == check.CheckOK
	})
	states(found, map[string]check.State{"Controller " + check.DeploymentAccount: check.CheckOK, "Controller bundle-source-controller": check.CheckOK,
		"Controller " + check.DeploymentAccount + " version": check.CheckWarning, "Leader of " + check.DeploymentAccount: check.CheckOK,
		"Artifact server": check.CheckWarning, "Impersonation": check.CheckFailed, "Network policies": check.CheckOK, "BundleDeployments": check.CheckWarning})
	if text := found["Impersonation"].Detail; !strings.Contains(text, c.Namespace) {
		t.Errorf("the namespace is not named: %s", text)
	}
	c.object("", `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: impersonator}, rules: [{apiGroups: [""], resources: [serviceaccounts], verbs: [impersonate]}]}`)
	c.object("", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: impersonator}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: impersonator},
  subjects: [{kind: ServiceAccount, name: `+check.DeploymentAccount+`, namespace: `+c.Namespace+`}]}`)
	found, _ = c.checks(func(f map[string]check.Finding) bool { return f["Impersonation"].State == check.CheckOK })
	states(found, map[string]check.State{"Impersonation": check.CheckOK})

	found, got = c.checks(now, "--as", "unprivileged")
	states(found, map[string]check.State{"CRDs": check.CheckUnknown, "Controllers": check.CheckUnknown, "Leaders": check.CheckUnknown, "Artifact server": check.CheckUnknown,
		"Impersonation": check.CheckUnknown, "Network policies": check.CheckUnknown, "BundleDeployments": check.CheckUnknown})
	if got.Code != kit.ExitOK {
		t.Errorf("what is not known is not broken: %s", got)
	}
	c.Want(c.Satchel("check", "nonsense"), kit.ExitError, "check takes no arguments")
}

// TestArtifactServerAnswers distinguishes answers of the artifact server from those of the API server's proxy.
func TestArtifactServerAnswers(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for name, tc := range map[string]struct {
		kind, body string
		code       int
		want       check.State
	}{
		"its own 404":    {"text/plain; charset=utf-8", "404 page not found\n", http.StatusNotFound, check.CheckOK},
		"an empty 404":   {"text/plain; charset=utf-8", "", http.StatusNotFound, check.CheckOK},
		"no Endpoints":   {"application/json", aStatus("NotFound", http.StatusNotFound), http.StatusNotFound, check.CheckWarning},
		"no Pod":         {"application/json", aStatus("ServiceUnavailable", http.StatusServiceUnavailable), http.StatusServiceUnavailable, check.CheckWarning},
		"not permitted":  {"application/json", aStatus("Forbidden", http.StatusForbidden), http.StatusForbidden, check.CheckUnknown},
		"something else": {"text/html", "<html>", http.StatusBadGateway, check.CheckWarning},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.Contains(r.URL.Path, "/services/http:artifacts:web/proxy") {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", tc.kind)
				w.WriteHeader(tc.code)
				_, _ = w.Write([]byte(tc.body))
			}))
			defer server.Close()
			a := testApp(&bytes.Buffer{})
			a.Config.APIServer = &server.URL
			e, err := check.NewExaminer(a, "demo")
			if err != nil {
				t.Fatal(err)
			}
			e.ArtifactServer(t.Context(), "Artifact server", "artifacts", "web")
			if got := e.Report.Checks; len(got) != 1 || got[0].State != tc.want {
				t.Errorf("%+v, want %s", got, tc.want)
			}
		})
	}
}

// aStatus is an error of the API server.
func aStatus(reason string, code int) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"endpoints","reason":%q,"details":{"name":"artifacts","kind":"endpoints"},"code":%d}`, reason, code)
}

func TestCheckPre(t *testing.T) {
	c := newTestCluster(t)
	now := func(map[string]check.Finding) bool { return true }
	found, got := c.checks(now, "--pre")
	for name, state := range map[string]check.State{"Kubernetes": check.CheckOK, "Admission policies": check.CheckOK, "Names": check.CheckOK, "Your permissions": check.CheckOK, "Volumes": check.CheckOK, "Installed": check.CheckOK} {
		if found[name].State != state {
			t.Errorf("%s: %+v", name, found[name])
		}
	}
	if got.Code != kit.ExitOK || !strings.Contains(found["Installed"].Detail, "installed already (v1alpha1)") {
		t.Error(got)
	}
	found, got = c.checks(now, "--pre", "--as", "unprivileged")
	if rights := found["Your permissions"]; got.Code != kit.ExitNo || rights.State != check.CheckFailed || !strings.Contains(rights.Detail, "create customresourcedefinitions.apiextensions.k8s.io") ||
		!strings.Contains(rights.Detail, "impersonate serviceaccounts") {
		t.Errorf("%+v", rights)
	}
	crd := parse(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: beds.`+c.Namespace+`.example.org}
spec: {group: `+c.Namespace+`.example.org, scope: Namespaced, names: {kind: Bed, plural: beds, listKind: BedList, shortNames: [bdep]},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}`)
	if err := c.AnyClient().Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.AnyClient().Delete(context.WithoutCancel(t.Context()), crd) })
	found, _ = c.checks(func(f map[string]check.Finding) bool { return f["Names"].State == check.CheckWarning }, "--pre")
	if names := found["Names"]; names.State != check.CheckWarning || !strings.Contains(names.Detail, "bdep of "+c.Namespace+".example.org/v1") {
		t.Errorf("%+v", names)
	}
}
