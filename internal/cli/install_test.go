// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/setup"
	"github.com/satchel-dev/satchel/internal/install"
	"github.com/satchel-dev/satchel/tests/clirig"
)

const testRegistry = "registry.test/satchel"

// bareCluster is the shared control plane without Satchel, and with volumes for its claims.
func bareCluster(t *testing.T) testCluster {
	t.Helper()
	if os.Getenv("SATCHEL_FULL") == "" {
		t.Skip("takes the CRDs from the control plane that all tests of this package share, and for a minute they may stay away: for the release suite, SATCHEL_FULL=1; tests/e2e and docs/walk.md install, upgrade and uninstall in every run")
	}
	c := newTestCluster(t)
	c.CP.RequireControl(t)
	clirig.UninstallCRDs(t, c.CP)
	for _, definition := range []string{"bundledeployments", "bundlesources", "bundleapprovals", "bundlecatalogs", "bundleimagepolicies", "bundlerollouts"} {
		c.goneFor(c.installedObject("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition+".satchel.dev"))
	}
	c.Eventually("Satchel is not installed in this cluster: ", "get")
	for _, name := range []string{"one", "two"} {
		volume := parse(t, `
apiVersion: v1
kind: PersistentVolume
metadata: {name: `+c.Namespace+"-"+name+`}
spec: {capacity: {storage: 50Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Retain, hostPath: {path: /nowhere}}`)
		if err := c.AnyClient().Create(t.Context(), volume); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.AnyClient().Delete(context.WithoutCancel(t.Context()), volume) })
	}
	t.Cleanup(func() {
		_ = c.runVersion(context.WithoutCancel(t.Context()), "v1.0.0", "uninstall", "--crds", "--keep-workloads", "--yes", "--timeout", "30s")
	})
	return c
}

// goneFor waits until an object does not exist.
func (c testCluster) goneFor(o client.Object) {
	c.T.Helper()
	err := wait.PollUntilContextTimeout(c.T.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(c.AnyClient().Get(ctx, client.ObjectKeyFromObject(o), o)), nil
	})
	if err != nil {
		c.T.Fatalf("%s is still there: %v", o.GetName(), err)
	}
}

// version runs a command line as the program of another version.
func (c testCluster) version(version string, args ...string) outcome {
	c.T.Helper()
	return c.runVersion(c.T.Context(), version, args...)
}

func (c testCluster) runVersion(ctx context.Context, version string, args ...string) outcome {
	var out, failure bytes.Buffer
	code := Run(ctx, kit.Program{
		Path: "satchel", Now: time.Now, Version: kit.VersionInfo{Version: version},
		Streams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &failure},
	}, append([]string{"--kubeconfig", c.CP.KubeconfigPath()}, args...))
	return outcome{Code: code, Out: out.String(), Err: failure.String()}
}

// resourceVersions are those of all objects of an installation.
func (c testCluster) resourceVersions() map[string]string {
	c.T.Helper()
	objects, err := install.Manifests(install.Options{})
	if err != nil {
		c.T.Fatal(err)
	}
	found := map[string]string{}
	for _, o := range objects {
		if err := c.AnyClient().Get(c.T.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			c.T.Fatal(err)
		}
		found[o.GetKind()+" "+o.GetName()] = o.GetResourceVersion()
		if slices.Contains([]string{"Deployment", "PersistentVolumeClaim", "ValidatingAdmissionPolicy"}, o.GetKind()) {
			found[o.GetKind()+" "+o.GetName()] = string(o.GetUID()) // the cluster's controllers write their status
		}
	}
	return found
}

func TestInstall(t *testing.T) {
	c := bareCluster(t)
	c.Want(c.version("v1.0.0", "install"), kit.ExitError, "are examples and not published", "--registry")
	c.Want(c.version("v1.0.0", "install", "--registry", testRegistry, "--as", "unprivileged"), kit.ExitError)
	dry := c.version("v1.0.0", "install", "--registry", testRegistry, "--dry-run")
	c.Want(dry, kit.ExitOK, "created   CustomResourceDefinition bundledeployments.satchel.dev", "created   Deployment satchel-system/bundle-source-controller", "this was a dry run")
	c.Want(c.version("v1.0.0", "get", "-A"), kit.ExitError, "Satchel is not installed in this cluster")

	c.Want(c.version("v1.0.0", "install", "--registry", testRegistry), kit.ExitOK, "CustomResourceDefinition bundledeployments.satchel.dev: established",
		"Deployment bundle-source-controller: 1 replica available, image registry.test/satchel/bundle-source-controller:v1.0.0",
		"Satchel v1.0.0 is installed in the namespace satchel-system: ")
	before := c.resourceVersions()
	again := c.version("v1.0.0", "install")
	c.Want(again, kit.ExitOK, " unchanged.")
	if strings.Contains(again.Out, " changed") || strings.Contains(again.Out, "created") {
		t.Errorf("something is written again: %s", again)
	}
	if diff := cmp.Diff(before, c.resourceVersions()); diff != "" {
		t.Errorf("the second time changes something: -before +after:\n%s", diff)
	}
	var plan setup.InstallPlan
	if got := c.version("v1.0.0", "install", "--dry-run", "-o", "json", "--ephemeral-storage"); json.Unmarshal([]byte(got.Out), &plan) != nil || fmt.Sprint(plan.Options.Values["image"]) != "map[registry:"+testRegistry+"]" {
		t.Errorf("the chosen options are not stored: %s", got)
	}
	kept := 0
	for _, step := range plan.Objects {
		if step.Outcome == setup.PieceKept && step.Kind == "PersistentVolumeClaim" {
			kept++
		}
	}
	if kept != 2 {
		t.Errorf("volumes would be removed: %+v", plan)
	}
	c.Want(c.version("v1.0.0", "install", "--system-namespace", "elsewhere"), kit.ExitError, "Satchel is installed in the namespace satchel-system")
}

// change patches an object of the installation.
func (c testCluster) change(o client.Object, patch string) {
	c.T.Helper()
	if err := c.AnyClient().Patch(c.T.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		c.T.Fatal(err)
	}
}

// installedObject is an object in the controllers' namespace, or of the cluster.
func (c testCluster) installedObject(apiVersion, kind, name string) *unstructured.Unstructured {
	o := c.missing(apiVersion, kind, name)
	o.SetNamespace("")
	if kind != "CustomResourceDefinition" {
		o.SetNamespace(kit.SystemNamespace)
	}
	return o
}

// TestUpgrade upgrades from another version: obsolete objects are removed, and forbidden changes are refused.
func TestUpgrade(t *testing.T) {
	c := bareCluster(t)
	c.Want(c.version("v1.0.0", "install", "--registry", testRegistry, "--ephemeral-storage", "--wait=false"), kit.ExitOK, "The controllers were not waited for")
	old := parse(t, `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: former, namespace: satchel-system}, spec: {podSelector: {}}}`)
	claim := parse(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: former, namespace: satchel-system}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`)
	kept := c.installedObject("v1", "ConfigMap", install.RecordName)
	if err := c.AnyClient().Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
		t.Fatal(err)
	}
	record, err := install.ReadRecord(kept)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []*unstructured.Unstructured{old, claim} {
		if err := c.AnyClient().Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		record.Objects = append(record.Objects, install.IDOf(o))
	}
	if kept, err = record.ConfigMap(); err != nil {
		t.Fatal(err)
	}
	kept.SetManagedFields(nil)
	if err := c.AnyClient().Update(t.Context(), kept); err != nil {
		t.Fatal(err)
	}

	c.Want(c.version("v1.1.0", "install", "--dry-run"), kit.ExitOK, "removed   NetworkPolicy satchel-system/former: this version does not have it",
		"kept      PersistentVolumeClaim satchel-system/former", "changed   Deployment satchel-system/bundle-source-controller")
	c.Want(c.version("v1.1.0", "install"), kit.ExitOK, "removed   NetworkPolicy satchel-system/former", "Satchel v1.0.0 is upgraded to v1.1.0", ":v1.1.0\n")
	c.goneFor(old) // the garbage collector finishes it
	if err := c.AnyClient().Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
		t.Errorf("a volume was removed: %v", err)
	}

	c.Want(c.version("v1.0.0", "install"), kit.ExitError, "v1.1.0 is installed, and this program is v1.0.0", "--allow-downgrade")
	c.Want(c.version("v1.0.0", "install", "--allow-downgrade", "--dry-run"), kit.ExitOK)
	definition := c.installedObject("apiextensions.k8s.io/v1", "CustomResourceDefinition", "bundleapprovals.satchel.dev")
	c.change(definition, `{"spec":{"versions":[`+
		`{"name":"v1alpha1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"colour":{"type":"string"}}}}}}},`+
		`{"name":"v9","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
	c.Want(c.version("v1.2.0", "install"), kit.ExitError, "nothing was changed, because the API server refuses it", "bundleapprovals.satchel.dev", "storedVersions", "v9")
	service := c.installedObject("v1", "Service", "bundle-source-controller")
	c.change(service, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm"},"annotations":{"meta.helm.sh/release-name":"satchel","meta.helm.sh/release-namespace":"ops"}}}`)
	c.Want(c.version("v1.2.0", "install"), kit.ExitError, "Service satchel-system/bundle-source-controller comes from Helm release ops/satchel: upgrade it there")
	c.Want(c.version("v1.2.0", "uninstall", "--yes"), kit.ExitError, "nothing was removed, because Service satchel-system/bundle-source-controller comes from Helm release ops/satchel")
	c.change(service, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null},"annotations":null}}`)
}

// TestUninstall removes the installation, and checks that the cluster is as it was before.
func TestUninstall(t *testing.T) {
	c := bareCluster(t)
	before := c.everything()
	c.Want(c.version("v1.0.0", "install", "--registry", testRegistry), kit.ExitOK)
	c.Create(aSource())
	d := aDeployment()
	d.Finalizers = []string{"satchel.dev/finalizer"}
	c.Create(d)

	listed := c.version("v1.0.0", "uninstall", "--dry-run")
	c.Want(listed, kit.ExitOK, "Deleted first (1 object):", "BundleDeployment.satchel.dev "+c.Namespace+"/podinfo", "Namespace satchel-system",
		"To keep (5 objects):", "add --crds to delete it")
	c.Want(c.version("v1.0.0", "uninstall", "--yes"), kit.ExitError, "nothing was removed, because there are 1 BundleDeployment ("+c.Namespace+"/podinfo)", "--keep-workloads or --delete-deployments")
	c.Want(c.version("v1.0.0", "uninstall", "--keep-workloads"), kit.ExitError, "add --yes")
	c.Want(c.version("v1.0.0", "uninstall", "--keep-workloads", "--delete-deployments"), kit.ExitError, "use only one of the two")

	got := c.version("v1.0.0", "uninstall", "--keep-workloads", "--crds", "--yes", "--timeout", "40s")
	c.Want(got, kit.ExitOK, "The controller does not remove the finalizers", "1 BundleDeployment released without the controller", "Namespace satchel-system: gone", "Satchel is removed.")
	if diff := cmp.Diff(before, c.everything()); diff != "" {
		t.Errorf("the cluster is not as before: -before +after:\n%s", diff)
	}
	c.Want(c.version("v1.0.0", "uninstall", "--yes"), kit.ExitOK, "is not installed in the namespace satchel-system; nothing to do")
}

// TestInstallWithRollouts installs the optional part, and uninstalls it while there is a rollout, and its controller is away.
func TestInstallWithRollouts(t *testing.T) {
	c := bareCluster(t)
	c.Want(c.version("v1.0.0", "install", "--registry", testRegistry), kit.ExitOK)
	c.Want(c.version("v1.0.0", "install", "--with", "rollouts"), kit.ExitOK, "CustomResourceDefinition bundlerollouts.satchel.dev: established",
		"Deployment bundle-rollout-controller: 1 replica available, image registry.test/satchel/bundle-rollout-controller:v1.0.0")
	c.Want(c.version("v1.0.0", "install"), kit.ExitOK, " unchanged.") // the choice is stored
	c.Create(aRollout(func(o *v1alpha1.BundleRollout) { o.Finalizers = []string{v1alpha1.Finalizer} }))

	c.Want(c.version("v1.0.0", "install", "--set", "rollouts.enabled=false"), kit.ExitOK, "removed   Deployment satchel-system/bundle-rollout-controller",
		"kept      CustomResourceDefinition bundlerollouts.satchel.dev")
	checked := c.version("v1.0.0", "check")
	c.Want(checked, checked.Code, "there is no bundle-rollout-controller in the namespace satchel-system")
	got := c.version("v1.0.0", "uninstall", "--keep-workloads", "--crds", "--yes", "--timeout", "40s")
	c.Want(got, kit.ExitOK, "Deleted before all others", "1 BundleRollout deleted", "Satchel is removed.")
	for name := range c.everything() {
		if strings.Contains(name, "rollout") && !strings.Contains(name, c.Namespace) { // which is named after the test
			t.Errorf("%s is left", name)
		}
	}
}

func TestExportWithRollouts(t *testing.T) {
	const controller = "name: bundle-rollout-controller"
	if got := satchel(t, "install", "--export", "--registry", testRegistry); got.Code != kit.ExitOK || strings.Contains(got.Out, controller) {
		t.Errorf("rollouts are installed without being asked for: %s", got.Err)
	}
	if got := satchel(t, "install", "--export", "--registry", testRegistry, "--with", "rollouts"); got.Code != kit.ExitOK || !strings.Contains(got.Out, controller) {
		t.Errorf("rollouts are missing: %s", got.Err)
	}
	if got := satchel(t, "install", "--export", "--with", "fleets"); got.Code != kit.ExitError || !strings.Contains(got.Err, `no optional part "fleets": choose from rollouts`) {
		t.Errorf("got %s", got)
	}
}

// everything are the names of all objects of the cluster, except those that the cluster creates.
func (c testCluster) everything() map[string]bool {
	c.T.Helper()
	kinds, err := discovery.NewDiscoveryClientForConfig(c.CP.RESTConfig())
	if err != nil {
		c.T.Fatal(err)
	}
	reader, err := metadata.NewForConfig(c.CP.RESTConfig())
	if err != nil {
		c.T.Fatal(err)
	}
	lists, err := kinds.ServerPreferredResources()
	if err != nil {
		c.T.Fatal(err)
	}
	found := map[string]bool{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "get", "delete"}}, lists) {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			c.T.Fatal(err)
		}
		for _, r := range list.APIResources {
			if r.Name == "events" || r.Name == "leases" || r.Name == "endpointslices" {
				continue
			}
			objects, err := reader.Resource(group.WithResource(r.Name)).List(c.T.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // a kind that was just removed is still told of for a moment
			}
			if err != nil {
				c.T.Fatal(err)
			}
			for _, o := range objects.Items {
				if strings.HasPrefix(o.Namespace+o.Name, "test") && o.Namespace != c.Namespace && o.Name != c.Namespace {
					continue // other tests'
				}
				found[r.Name+" "+o.Namespace+"/"+o.Name] = true
			}
		}
	}
	return found
}
