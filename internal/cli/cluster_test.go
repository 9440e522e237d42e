// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/inspect"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

func TestMain(m *testing.M) {
	child.Main(inspect.Handlers())
	os.Exit(controlplane.RunMain(m))
}

// testCluster is a namespace of the shared control plane, in which the test plays the controllers.
type testCluster struct {
	t         *testing.T
	cp        *controlplane.ControlPlane
	client    client.WithWatch
	namespace string
}

var crds struct {
	sync.Mutex
	installed bool
}

func crdOptions() envtest.CRDInstallOptions {
	return envtest.CRDInstallOptions{Paths: []string{"../../config/crd/bases", "../../config/rollouts/crd"}, ErrorIfPathMissing: true}
}

func newTestCluster(t *testing.T) testCluster {
	t.Helper()
	cp := controlplane.Shared(t)
	crds.Lock()
	defer crds.Unlock()
	if !crds.installed {
		if _, err := envtest.InstallCRDs(cp.RESTConfig(), crdOptions()); err != nil {
			t.Fatalf("installing the CRDs: %v", err)
		}
		crds.installed = true
	}
	c, err := client.NewWithWatch(cp.RESTConfig(), client.Options{Scheme: kit.NewScheme(), Mapper: kit.StaticMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return testCluster{t: t, cp: cp, client: c, namespace: controlplane.NewNamespace(t, cp)}
}

// satchel runs a command line against the namespace.
func (c testCluster) satchel(args ...string) outcome {
	c.t.Helper()
	return satchel(c.t, append([]string{"--kubeconfig", c.cp.KubeconfigPath(), "-n", c.namespace}, args...)...)
}

// create stores an object and its status.
func (c testCluster) create(o view.Object) {
	c.t.Helper()
	o.SetNamespace(c.namespace)
	o.SetGeneration(0)
	o.SetCreationTimestamp(metav1.Time{})
	status := o.DeepCopyObject().(view.Object)
	if err := c.client.Create(c.t.Context(), o); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = c.client.Delete(context.WithoutCancel(c.t.Context()), o) }) // other tests list all namespaces
	status.SetResourceVersion(o.GetResourceVersion())
	status.SetUID(o.GetUID())
	switch status := status.(type) {
	case *v1alpha1.BundleDeployment:
		status.Status.ObservedGeneration = min(status.Status.ObservedGeneration, 1)
	case *v1alpha1.BundleSource:
		status.Status.ObservedGeneration = min(status.Status.ObservedGeneration, 1)
	case *v1alpha1.BundleCatalog:
		status.Status.ObservedGeneration = min(status.Status.ObservedGeneration, 1)
	}
	if err := c.client.Status().Update(c.t.Context(), status); err != nil {
		c.t.Fatal(err)
	}
}

func called(name string) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) { d.Name = name }
}

// want checks the exit code and that the output contains the strings.
func (c testCluster) want(got outcome, code int, texts ...string) {
	c.t.Helper()
	if got.code != code {
		c.t.Errorf("exit %d, want %d: %s", got.code, code, got)
	}
	for _, text := range texts {
		if !strings.Contains(got.out+got.err, text) {
			c.t.Errorf("%q is missing in %s", text, got)
		}
	}
}

func TestGet(t *testing.T) {
	c := newTestCluster(t)
	c.want(c.satchel("get"), kit.ExitOK, "Nothing found in the namespace "+c.namespace)
	c.create(aSource())
	c.create(aDeployment())
	c.create(aDeployment(called("broken"), reference, with(no(meta.ReadyCondition, v1alpha1.ReasonPlanRefused, "2 obstacles"))))

	c.want(c.satchel("get"), kit.ExitOK, "NAME      READY   VERSION   ORIGIN                  OBJECTS   PENDING   AGE", "broken    False", "podinfo   True    1.3.0     v1.3.0@sha256:aaaaaaa   5")
	everywhere := c.satchel("get", "all", "-A")
	everywhere.out = strings.Join(strings.Fields(everywhere.out), " ") // how wide a column is depends on what others have
	c.want(everywhere, kit.ExitOK, "NAMESPACE", c.namespace+" deployment/podinfo", c.namespace+" source/podinfo")
	c.want(c.satchel("get", "source", "podinfo", "-o", "wide"), kit.ExitOK, "image example.org/podinfo:v1.3.0", revisionB)
	c.want(c.satchel("get", "-l", "a=b"), kit.ExitOK, "Nothing found with the labels a=b")
	c.want(c.satchel("get", "-l", "a in b"), kit.ExitError, "Error: listing bundledeployments: ")
	if got := c.satchel("get", "all", "-o", "name"); got.out != "bundledeployment.satchel.dev/broken\nbundledeployment.satchel.dev/podinfo\nbundlesource.satchel.dev/podinfo\n" {
		t.Errorf("got %s", got)
	}
	var list struct{ Items []map[string]any }
	if got := c.satchel("get", "broken", "podinfo", "-o", "json"); json.Unmarshal([]byte(got.out), &list) != nil || len(list.Items) != 2 {
		t.Errorf("got %s", got)
	}
	var one map[string]any
	if got := c.satchel("get", "podinfo", "-o", "json"); json.Unmarshal([]byte(got.out), &one) != nil || one["kind"] != "BundleDeployment" {
		t.Errorf("got %s", got)
	}
	if interval := one["spec"].(map[string]any)["interval"]; interval != "10m" {
		t.Errorf("the interval is %v, not as it was written", interval)
	}
}

func TestStatusOfCluster(t *testing.T) {
	c := newTestCluster(t)
	c.create(aSource())
	c.create(aDeployment())
	c.create(aDeployment(called("broken"), reference, with(no(v1alpha1.PlannedCondition, v1alpha1.ReasonPlanRefused, "one\ntwo"),
		no(meta.ReadyCondition, v1alpha1.ReasonPlanRefused, "2 obstacles"))))
	c.create(aDeployment(called("lonely"), func(d *v1alpha1.BundleDeployment) { d.Status = v1alpha1.BundleDeploymentStatus{} }))

	c.want(c.satchel("status", "podinfo"), kit.ExitOK, "BundleDeployment "+c.namespace+"/podinfo: Ready\n", "✓ Healthy      all healthy")
	c.want(c.satchel("status", "deployment/broken"), kit.ExitNo, ": not Ready\n", "✗ Planned      PlanRefused", "│  ├─ two\n", "What to do: Fix each problem")
	c.want(c.satchel("status", "lonely"), kit.ExitNo, ": not seen by the controller yet\n", "there is no such BundleSource yet")
	c.want(c.satchel("status", "broken", "-o", "json"), kit.ExitNo, `"step": "Planned"`)
	c.want(c.satchel("status", "broken", "-o", "yaml"), kit.ExitNo, "step: Planned")
}

func TestNotFound(t *testing.T) {
	c := newTestCluster(t)
	c.want(c.satchel("status", "podinof"), kit.ExitError, `Error: there is no BundleDeployment "podinof" in the namespace "`+c.namespace+`", which holds none at all; choose another with -n, or list all with: get deployments -A`)
	c.create(aDeployment())
	c.create(aDeployment(called("other")))
	for _, args := range [][]string{{"status", "podinof"}, {"get", "podinof"}, {"reconcile", "podinof"}} {
		c.want(c.satchel(args...), kit.ExitError, `Error: there is no BundleDeployment "podinof" in the namespace "`+c.namespace+`"; there is: podinfo, other`)
	}
	elsewhere := c
	elsewhere.namespace = controlplane.NewNamespace(t, c.cp)
	c.create(aDeployment(called("only-here")))
	c.want(elsewhere.satchel("status", "only-here"), kit.ExitError, "; there is one in: "+c.namespace+" (choose with -n)")
}

// TestForbidden asks as a user without permissions.
func TestForbidden(t *testing.T) {
	c := newTestCluster(t)
	c.create(aDeployment())
	c.want(c.satchel("get", "--as", "unprivileged"), kit.ExitError, `Error: you may not list bundledeployments.satchel.dev in the namespace "`+c.namespace+`": ask an administrator`, `User "unprivileged"`)
	c.want(c.satchel("get", "sources", "-A", "--as", "unprivileged"), kit.ExitError, "you may not list bundlesources.satchel.dev in all namespaces")
	c.want(c.satchel("status", "podinfo", "--as", "unprivileged"), kit.ExitError, "you may not get bundledeployments.satchel.dev")
}

func TestVersionOfCluster(t *testing.T) {
	c := newTestCluster(t)
	c.want(c.satchel("version"), kit.ExitOK, "satchel v0.0.0-test", "\nKubernetes v1.", "\nAPI satchel.dev/v1alpha1\n")
}

func TestCompletion(t *testing.T) {
	c := newTestCluster(t)
	c.create(aSource())
	c.create(aDeployment(func(d *v1alpha1.BundleDeployment) {
		d.Status.History = []v1alpha1.RevisionRecord{record(revisionA, "")}
	}))
	c.create(aDeployment(called("other")))
	c.create(aCatalog())
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
			got := c.satchel(append([]string{"__complete"}, tc.args...)...)
			words, found := strings.CutSuffix(got.out, noFiles)
			if diff := cmp.Diff(tc.want, strings.Fields(words)); !found || len(tc.want)+len(strings.Fields(words)) > 0 && diff != "" {
				t.Errorf("%s: -want +got:\n%s\n%s", tc.reason, diff, got)
			}
		})
	}
	for _, args := range [][]string{{"get", "-n", ""}, {"render", "--install-namespace", ""}} {
		c.want(c.satchel(append([]string{"__complete"}, args...)...), kit.ExitOK, c.namespace+"\n")
	}
	c.want(c.satchel("__complete", "get", "--context", ""), kit.ExitOK, ":4")
	c.want(c.satchel("__complete", "get", "", "--as", "unprivileged"), kit.ExitOK)
}

// TestNotInstalled removes the CRDs. The tests of a package run one after the other.
func TestNotInstalled(t *testing.T) {
	c := newTestCluster(t)
	c.cp.RequireControl(t)
	crds.Lock()
	err := envtest.UninstallCRDs(c.cp.RESTConfig(), crdOptions())
	crds.installed = false
	crds.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	missing := "Error: Satchel is not installed in this cluster: the API satchel.dev/v1alpha1 is missing; install it with satchel install"
	for _, args := range [][]string{{"get"}, {"get", "x"}, {"get", "sources"}, {"status", "x"}, {"reconcile", "source", "x"}} {
		c.want(c.eventually(missing, args...), kit.ExitError, missing)
	}
	const installed = "Satchel is not installed in this cluster\n"
	c.want(c.eventually(installed, "version"), kit.ExitOK, installed)
}

// eventually repeats a command line until it says something: an API that was just removed is still known for a moment.
func (c testCluster) eventually(text string, args ...string) outcome {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	for {
		got := c.satchel(args...)
		if strings.Contains(got.out+got.err, text) {
			return got
		}
		select {
		case <-ctx.Done():
			return got
		case <-time.After(100 * time.Millisecond):
		}
	}
}
