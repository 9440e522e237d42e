// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan/fields"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/preview"
	"github.com/satchel-dev/satchel/internal/cli/printer"
)

func configMap(data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "demo"}, "data": data,
	}}
}

// aPreview is a preview with all fields set.
func aPreview() *preview.Preview {
	before, after := configMap(map[string]any{"color": "red", "same": "x"}), configMap(map[string]any{"color": "blue " + steering, "same": "x"})
	changes, _ := fields.Diff(before, after)
	v := &preview.Preview{
		Namespace: "demo", Name: "podinfo", Applied: revisionA, Content: digestA, Digest: digestB,
		Summary: "1 to create, 1 to update, 1 to delete", Unchanged: 3,
		Objects: []preview.ObjectPreview{
			{Verb: "Create", Kind: "ConfigMap", Namespace: "demo", Name: "new", Reason: "does not exist", After: configMap(nil)},
			{Verb: "Update", Kind: "ConfigMap", Namespace: "demo", Name: "settings", Fields: changes, More: 2, Contested: `"kubectl" manages .data.color`, Before: before, After: after, Applied: true, Desired: after.Object},
			{Verb: "Update", Group: "apps", Kind: "Deployment", Namespace: "demo", Name: "web" + steering, Notes: []string{"keeps .spec.replicas (3) for HorizontalPodAutoscaler.autoscaling demo/web" + steering}, Unknown: "you may not try it " + steering, Failed: "it is wrong\n" + steering},
			{Verb: "Recreate", Group: "batch", Kind: "Job", Namespace: "demo", Name: "once", Reason: "has fields that cannot be changed"},
			{Verb: preview.VerbDelete, Kind: "Service", Namespace: "demo", Name: "old", Reason: "left the bundle"},
			{Verb: preview.VerbRelease, Kind: "PersistentVolumeClaim", Namespace: "demo", Name: "data", Reason: "is kept, for pruning is switched off"},
		},
		Held: "6 of 10 objects would be deleted", Skipped: []string{"ServiceMonitor.monitoring.coreos.com demo/a"}, Certificates: []string{"Secret demo/serving"},
		Violations: []preview.ViolationPreview{{Rule: "Collision", Object: "ConfigMap demo/a", Message: "ConfigMap demo/a belongs to shop/other", Remedy: "rename it" + steering}},
		Account:    preview.AccountPreview{Name: "demo/installer", Missing: []preview.ViolationPreview{{Message: "the ServiceAccount cannot get pods"}}},
		Impact: preview.ImpactPreview{
			Permissions: []preview.PermissionPreview{{Subject: `service account "demo/web"`, May: []string{"get secrets" + steering, "list pods"}}, {Subject: `user "ann"`, Namespace: "demo", May: []string{"get pods"}}},
			Definitions: []preview.DefinitionPreview{{Name: "widgets.example.org", Change: "Changed", Details: []string{"v1: adds .spec.size"}}, {Name: "gone.example.org", Change: "Removed"}},
			Images:      []preview.ImagePreview{{Object: "Deployment.apps demo/web", Container: "web", From: "web:1", To: "web:2"}, {Object: "Deployment.apps demo/api", Container: "api", From: "web:1", To: "web:2"}, {Object: "Job.batch demo/once", Container: "x", To: "new:1"}},
			Restarts:    []preview.RestartPreview{{Object: "Deployment.apps demo/web", Fields: []string{".a", ".b", ".c", ".d"}, Note: "when it is no longer paused"}},
		},
		Approval: preview.ApprovalPreview{Mode: "OnEscalation", Needed: true, Because: []string{"new permissions", "deletions"}},
		Warnings: []string{"a warning\nof two lines"}, Notes: []string{"something was not looked at"},
		Mode: v1alpha1.ApprovalOnEscalation,
	}
	return v
}

func TestPlanOutput(t *testing.T) {
	for name, wide := range map[string]bool{"text": false, "wide": true} {
		text := aPreview().Print(printer.Style{}, "satchel", wide)
		golden(t, "plan/"+name, text)
		if odd := hiddenIn(text); odd != "" {
			t.Errorf("%s: %s", name, odd)
		}
	}
	quiet := &preview.Preview{Namespace: "demo", Name: "podinfo", Content: digestA, Summary: "5 objects, nothing to do", Unchanged: 5,
		Account: preview.AccountPreview{Name: "demo/installer", Unchecked: "you may not impersonate it"}, Approval: preview.ApprovalPreview{Mode: "Automatic"}, Mode: v1alpha1.ApprovalAutomatic}
	golden(t, "plan/quiet", quiet.Print(printer.Style{}, "satchel", false))
	if quiet.Changes() || !aPreview().Changes() {
		t.Error("what changes nothing and what changes something are told apart by it")
	}
	var out strings.Builder
	for _, o := range aPreview().Objects {
		out.WriteString(o.Unified())
	}
	golden(t, "plan/diff", out.String())
	if odd := hiddenIn(out.String()); odd != "" {
		t.Error(odd)
	}
}

func TestSnippet(t *testing.T) {
	v := aPreview()
	v.Objects[1].Fields = append(v.Objects[1].Fields, fields.Change{Path: ".gone"})
	rules, left := preview.Snippet(v)
	if len(rules) != 1 || rules[0].Target.Name != "settings" || len(rules[0].Paths) != 1 || rules[0].Paths[0] != "/data/color" || len(left) != 1 {
		t.Errorf("%+v, left %q", rules, left)
	}
	v.Objects[1].Applied = false
	if rules, _ := preview.Snippet(v); len(rules) != 0 {
		t.Errorf("an object that was never applied: %+v", rules)
	}
}

// A Service of the cluster is reached through the API server, anything else directly.
func TestArtifactClient(t *testing.T) {
	asked := ""
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RequestURI()
		if strings.Contains(r.URL.Path, "refused") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind": "Status", "message": "no"}`))
		}
	}))
	defer api.Close()
	for name, tc := range map[string]struct{ reason, server, path, want, wrong string }{
		"service":   {"its short name", "http://sources.satchel-system.svc", "/a/b.tar.gz", "/api/v1/namespaces/satchel-system/services/http:sources:80/proxy/a/b.tar.gz", ""},
		"domain":    {"with port and domain", "https://sources.ns.svc.cluster.local.:8443", "/a", "/api/v1/namespaces/ns/services/https:sources:8443/proxy/a", ""},
		"forbidden": {"the API server refuses, not the artifact server", "http://sources.ns.svc", "/refused", "/api/v1/namespaces/ns/services/http:sources:80/proxy/refused", "services/proxy"},
		"query":     {"with parameters", "http://sources.ns.svc", "/a?b=c%2Fd", "/api/v1/namespaces/ns/services/http:sources:80/proxy/a?b=c%2Fd", ""},
		"direct":    {"no Service", api.URL, "/a", "/a", ""},
	} {
		server, err := url.Parse(tc.server)
		if err != nil {
			t.Fatal(err)
		}
		client, err := bundle.ArtifactClient(&rest.Config{Host: api.URL}, server)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Get(tc.server + tc.path)
		if err == nil {
			response.Body.Close()
		}
		if (tc.wrong == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.wrong) || asked != tc.want {
			t.Errorf("%s (%s): %v, asked %s", name, tc.reason, err, asked)
		}
	}
}

// Ctrl-C during the download of an artifact leaves no files, and is distinguished from an error.
func TestInterruptedDownload(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		cancel()
		<-ended
	}))
	defer server.Close()
	defer close(ended)
	var errOut bytes.Buffer
	a := newApp(kit.Program{Path: "satchel", Now: time.Now, Streams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &errOut, ErrOut: &errOut}})
	identity := strings.TrimPrefix(digestA, "sha256:")
	_, err := bundle.OpenArtifact(ctx, a, &rest.Config{Host: server.URL}, artifact.SourceOwner("demo", "podinfo"),
		meta.Artifact{URL: server.URL + "/bundlesource/demo/podinfo/" + identity + ".tar.gz", Revision: revisionA, Digest: digestB})
	if err == nil || a.ExitCode(ctx, err) != kit.ExitInterrupted {
		t.Errorf("%v: %s", err, errOut.String())
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
