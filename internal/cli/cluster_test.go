// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/inspect"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/tests/clirig"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

func TestMain(m *testing.M) {
	child.Main(inspect.Handlers())
	os.Exit(controlplane.RunMain(m))
}

// testCluster is a namespace of the shared control plane, in which the test plays the controllers.
type testCluster struct{ clirig.Cluster }

func newTestCluster(t *testing.T) testCluster {
	t.Helper()
	return testCluster{clirig.New(t, Run)}
}

func TestGet(t *testing.T) {
	c := newTestCluster(t)
	c.Want(c.Satchel("get"), kit.ExitOK, "Nothing found in the namespace "+c.Namespace)
	c.Create(aSource())
	c.Create(aDeployment())
	c.Create(aDeployment(called("broken"), reference, with(no(meta.ReadyCondition, v1alpha1.ReasonPlanRefused, "2 obstacles"))))

	c.Want(c.Satchel("get"), kit.ExitOK, "NAME      READY   VERSION   ORIGIN                  OBJECTS   PENDING   AGE", "broken    False", "podinfo   True    1.3.0     v1.3.0@sha256:aaaaaaa   5")
	everywhere := c.Satchel("get", "all", "-A")
	everywhere.Out = strings.Join(strings.Fields(everywhere.Out), " ") // how wide a column is depends on what others have
	c.Want(everywhere, kit.ExitOK, "NAMESPACE", c.Namespace+" deployment/podinfo", c.Namespace+" source/podinfo")
	c.Want(c.Satchel("get", "source", "podinfo", "-o", "wide"), kit.ExitOK, "image example.org/podinfo:v1.3.0", revisionB)
	c.Want(c.Satchel("get", "-l", "a=b"), kit.ExitOK, "Nothing found with the labels a=b")
	c.Want(c.Satchel("get", "-l", "a in b"), kit.ExitError, "Error: listing bundledeployments: ")
	if got := c.Satchel("get", "all", "-o", "name"); got.Out != "bundledeployment.satchel.dev/broken\nbundledeployment.satchel.dev/podinfo\nbundlesource.satchel.dev/podinfo\n" {
		t.Errorf("got %s", got)
	}
	var list struct{ Items []map[string]any }
	if got := c.Satchel("get", "broken", "podinfo", "-o", "json"); json.Unmarshal([]byte(got.Out), &list) != nil || len(list.Items) != 2 {
		t.Errorf("got %s", got)
	}
	var one map[string]any
	if got := c.Satchel("get", "podinfo", "-o", "json"); json.Unmarshal([]byte(got.Out), &one) != nil || one["kind"] != "BundleDeployment" {
		t.Errorf("got %s", got)
	}
	if interval := one["spec"].(map[string]any)["interval"]; interval != "10m" {
		t.Errorf("the interval is %v, not as it was written", interval)
	}
}

func TestStatusOfCluster(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aSource())
	c.Create(aDeployment())
	c.Create(aDeployment(called("broken"), reference, with(no(v1alpha1.PlannedCondition, v1alpha1.ReasonPlanRefused, "one\ntwo"),
		no(meta.ReadyCondition, v1alpha1.ReasonPlanRefused, "2 obstacles"))))
	c.Create(aDeployment(called("lonely"), func(d *v1alpha1.BundleDeployment) { d.Status = v1alpha1.BundleDeploymentStatus{} }))

	c.Want(c.Satchel("status", "podinfo"), kit.ExitOK, "BundleDeployment "+c.Namespace+"/podinfo: Ready\n", "✓ Healthy      all healthy")
	c.Want(c.Satchel("status", "deployment/broken"), kit.ExitNo, ": not Ready\n", "✗ Planned      PlanRefused", "│  ├─ two\n", "What to do: Fix each problem")
	c.Want(c.Satchel("status", "lonely"), kit.ExitNo, ": not seen by the controller yet\n", "there is no such BundleSource yet")
	c.Want(c.Satchel("status", "broken", "-o", "json"), kit.ExitNo, `"step": "Planned"`)
	c.Want(c.Satchel("status", "broken", "-o", "yaml"), kit.ExitNo, "step: Planned")
}

func TestNotFound(t *testing.T) {
	c := newTestCluster(t)
	c.Want(c.Satchel("status", "podinof"), kit.ExitError, `Error: there is no BundleDeployment "podinof" in the namespace "`+c.Namespace+`", which holds none at all; choose another with -n, or list all with: get deployments -A`)
	c.Create(aDeployment())
	c.Create(aDeployment(called("other")))
	for _, args := range [][]string{{"status", "podinof"}, {"get", "podinof"}, {"reconcile", "podinof"}} {
		c.Want(c.Satchel(args...), kit.ExitError, `Error: there is no BundleDeployment "podinof" in the namespace "`+c.Namespace+`"; there is: podinfo, other`)
	}
	elsewhere := c
	elsewhere.Namespace = controlplane.NewNamespace(t, c.CP)
	c.Create(aDeployment(called("only-here")))
	c.Want(elsewhere.Satchel("status", "only-here"), kit.ExitError, "; there is one in: "+c.Namespace+" (choose with -n)")
}

// TestForbidden asks as a user without permissions.
func TestForbidden(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aDeployment())
	c.Want(c.Satchel("get", "--as", "unprivileged"), kit.ExitError, `Error: you may not list bundledeployments.satchel.dev in the namespace "`+c.Namespace+`": ask an administrator`, `User "unprivileged"`)
	c.Want(c.Satchel("get", "sources", "-A", "--as", "unprivileged"), kit.ExitError, "you may not list bundlesources.satchel.dev in all namespaces")
	c.Want(c.Satchel("status", "podinfo", "--as", "unprivileged"), kit.ExitError, "you may not get bundledeployments.satchel.dev")
}

func TestVersionOfCluster(t *testing.T) {
	c := newTestCluster(t)
	c.Want(c.Satchel("version"), kit.ExitOK, "satchel v0.0.0-test", "\nKubernetes v1.", "\nAPI satchel.dev/v1alpha1\n")
}

func TestCompletion(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aSource())
	c.Create(aDeployment(func(d *v1alpha1.BundleDeployment) {
		d.Status.History = []v1alpha1.RevisionRecord{record(revisionA, "")}
	}))
	c.Create(aDeployment(called("other")))
	c.Create(aCatalog())
	const noFiles = ":4\n" // cobra's directive
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   []string // nil: anything that holds the namespace
	}{
		"get":              {"names and kinds", []string{"get", ""}, []string{"other", "podinfo", "deployments", "sources", "catalogs", "all"}},
		"get second":       {"not what is there already", []string{"get", "podinfo", ""}, []string{"other"}},
		"get sources":      {"names of the kind", []string{"get", "sources", ""}, []string{"podinfo"}},
		"status catalog":   {"names of the kind", []string{"status", "catalog", ""}, []string{"community"}},
		"resolve":          {"names of catalogs", []string{"resolve", "shop", "--catalog", ""}, []string{"community"}},
		"get qualified":    {"KIND/NAME", []string{"get", "source/"}, []string{"source/podinfo"}},
		"status":           {"one of either kind", []string{"status", ""}, []string{"other", "podinfo", "deployment", "source", "catalog"}},
		"status second":    {"one name", []string{"status", "podinfo", ""}, nil},
		"reconcile":        {"one of either kind", []string{"reconcile", ""}, []string{"other", "podinfo", "deployment", "source", "catalog"}},
		"reconcile source": {"names of the kind", []string{"reconcile", "source", ""}, []string{"podinfo"}},
		"suspend":          {"several of either kind", []string{"suspend", "podinfo", ""}, []string{"other"}},
		"wait source":      {"names of the kind", []string{"wait", "source", ""}, []string{"podinfo"}},
		"wait for":         {"what can be waited for", []string{"wait", "--for", ""}, []string{"ready", "deleted", "revision="}},
		"rollback":         {"revisions of the one that is named", []string{"rollback", "podinfo", "--to", ""}, []string{"previous", "v1.2.0@sha256:aaaaaaaaaaaa"}},
		"delete":           {"deployments only", []string{"delete", "podinfo", ""}, nil},
		"export":           {"words of the flag", []string{"export", "-o", ""}, []string{"yaml", "json"}},
		"check":            {"nothing", []string{"check", ""}, nil},
		"output":           {"words of the flag", []string{"get", "-o", ""}, []string{"table", "wide", "name", "json", "yaml", "jsonpath=", "custom-columns="}},
		"format":           {"words of the flag", []string{"render", "--format", ""}, []string{"plain+v0", "registry+v1", "helm", "kustomize"}},
		"shell":            {"the shells", []string{"completion", ""}, []string{"bash", "zsh", "fish", "powershell"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.Satchel(append([]string{"__complete"}, tc.args...)...)
			words, found := strings.CutSuffix(got.Out, noFiles)
			if diff := cmp.Diff(tc.want, strings.Fields(words)); !found || len(tc.want)+len(strings.Fields(words)) > 0 && diff != "" {
				t.Errorf("%s: -want +got:\n%s\n%s", tc.reason, diff, got)
			}
		})
	}
	for _, args := range [][]string{{"get", "-n", ""}, {"render", "--install-namespace", ""}} {
		c.Want(c.Satchel(append([]string{"__complete"}, args...)...), kit.ExitOK, c.Namespace+"\n")
	}
	c.Want(c.Satchel("__complete", "get", "--context", ""), kit.ExitOK, ":4")
	c.Want(c.Satchel("__complete", "get", "", "--as", "unprivileged"), kit.ExitOK)
}

// TestNotInstalled removes the CRDs.
func TestNotInstalled(t *testing.T) {
	c := newTestCluster(t)
	c.CP.RequireControl(t)
	clirig.UninstallCRDs(t, c.CP)
	missing := "Error: Satchel is not installed in this cluster: the API satchel.dev/v1alpha1 is missing; install it with satchel install"
	for _, args := range [][]string{{"get"}, {"get", "x"}, {"get", "sources"}, {"status", "x"}, {"reconcile", "source", "x"}} {
		c.Want(c.Eventually(missing, args...), kit.ExitError, missing)
	}
	const installed = "Satchel is not installed in this cluster\n"
	c.Want(c.Eventually(installed, "version"), kit.ExitOK, installed)
}
