// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/install"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// TestUpgradeAndUninstall has kubectl install an older version, upgrades it by satchel install, and removes everything: the
// upgrade writes to no object of a bundle, from any client, and the removal leaves nothing behind.
func TestUpgradeAndUninstall(t *testing.T) {
	r := newRig(t)
	r.CP.RequireControl(t)
	namespace := r.Namespace(t)
	t.Cleanup(func() { r.reinstall(t) })
	r.olderVersion(t)
	image := r.Push(t, "upgrade:v1", fstest.MapFS{"manifests/app.yaml": {Data: []byte(workload)}})
	key := r.Deploy(t, namespace, "app", image, nil)
	r.Ready(t, key)
	before := r.workload(t, namespace)

	mark := r.mark(t)
	r.Kill(sourceController)
	r.Kill(deploymentController)
	upgrade := []string{"install", "--registry", "registry.test/satchel", "--tag", "v1.1.0", "--ephemeral-storage"}
	r.satchel(t, namespace, append(upgrade, "--dry-run")...).says(t, 0, "recreated Deployment satchel-system/bundle-source-controller: its selector is another one")
	r.satchel(t, namespace, upgrade...).says(t, 0, "gone", "recreated Deployment satchel-system/bundle-deployment-controller",
		"Deployment bundle-source-controller: 1 replica available, image registry.test/satchel/bundle-source-controller:v1.1.0")
	r.asInstalled(t)
	for _, name := range []string{sourceController, deploymentController} {
		if err := r.Start(name); err != nil {
			t.Fatal(err)
		}
	}
	r.handled(t, key, r.request(t, []client.ObjectKey{key}))
	r.Ready(t, key)
	if written := r.workloadWrites(t, mark, namespace); len(written) > 0 {
		t.Errorf("the upgrade writes to objects of a bundle:\n%s", strings.Join(written, "\n"))
	}
	if after := r.workload(t, namespace); after != before {
		t.Errorf("the Deployment of the bundle is another one: %s, was %s", after, before)
	}

	r.satchel(t, namespace, "uninstall", "--yes").says(t, 2, "nothing was removed, because there are 1 BundleDeployment")
	r.satchel(t, namespace, "uninstall", "--delete-deployments", "--crds", "--yes").says(t, 0, "All BundleDeployments: gone", "Satchel is removed.")
	var gone appsv1.Deployment
	if err := r.Admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "app"}, &gone); !apierrors.IsNotFound(err) {
		t.Errorf("what was installed is left: %v", err)
	}
	r.satchel(t, namespace, "uninstall", "--yes").says(t, 0, "nothing to do")
	r.satchel(t, namespace, "version").says(t, 0, "Satchel is not installed in this cluster")
}

const workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec: {containers: [{name: main, image: example.org/app:v1}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data: {a: b}
`

// olderVersion installs as kubectl does what an older version could have been: other labels, another image, and an
// environment variable that the newer one does not have.
func (r *rig) olderVersion(t *testing.T) {
	t.Helper()
	objects, err := install.Manifests(install.Options{Version: "v1.0.0", Values: map[string]any{
		"image": map[string]any{"registry": "registry.test/satchel"}, "storage": map[string]any{"persistent": false},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			age(t, o)
		}
		if err := r.Admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// age gives a Deployment the labels and the variable of the older version.
func age(t *testing.T, d *unstructured.Unstructured) {
	t.Helper()
	label := map[string]any{"app.kubernetes.io/name": d.GetName(), "control-plane": "controller"}
	containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	container, isContainer := containers[0].(map[string]any)
	env, isList := container["env"].([]any)
	if !isContainer || !isList {
		t.Fatal("the Deployment has another shape")
	}
	container["env"] = append(env, map[string]any{"name": "FORMER", "value": "1"})
	for _, err := range []error{
		unstructured.SetNestedMap(d.Object, label, "spec", "selector", "matchLabels"),
		unstructured.SetNestedMap(d.Object, label, "spec", "template", "metadata", "labels"),
		unstructured.SetNestedSlice(d.Object, containers, "spec", "template", "spec", "containers"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// asInstalled wants nothing left of the older version, in the objects that stayed as well.
func (r *rig) asInstalled(t *testing.T) {
	t.Helper()
	var deployments appsv1.DeploymentList
	var policies networkingv1.NetworkPolicyList
	for _, list := range []client.ObjectList{&deployments, &policies} {
		if err := r.Admin.List(t.Context(), list, client.InNamespace(installation.Namespace)); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range deployments.Items {
		for _, variable := range d.Spec.Template.Spec.Containers[0].Env {
			if variable.Name == "FORMER" {
				t.Errorf("%s keeps a variable of the older version", d.Name)
			}
		}
	}
	for _, p := range policies.Items {
		for _, entry := range p.ManagedFields {
			if entry.Manager == "kubectl" {
				t.Errorf("kubectl still owns fields of the NetworkPolicy %s", p.Name)
			}
		}
	}
}

// workload identifies the bundle's Deployment and its state.
func (r *rig) workload(t *testing.T, namespace string) string {
	t.Helper()
	var d appsv1.Deployment
	var c corev1.ConfigMap
	for _, o := range []client.Object{&d, &c} {
		if err := r.Admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "app"}, o); err != nil {
			t.Fatal(err)
		}
	}
	return string(d.UID) + "/" + string(c.UID) + "/" + c.ResourceVersion
}

// workloadWrites are all writes since a mark to objects of a namespace that are not Satchel's own, but for those of the
// cluster's controllers.
func (r *rig) workloadWrites(t *testing.T, since controlplane.AuditMark, namespace string) []string {
	t.Helper()
	events, err := r.CP.Audit(since)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range events {
		if e.Namespace == namespace && e.APIGroup != "satchel.dev" && isWriting(e) && !strings.HasPrefix(e.User, "system:kube-") && e.APIGroup != "events.k8s.io" &&
			!strings.HasPrefix(e.User, "system:serviceaccount:kube-system:") && !strings.HasPrefix(e.UserAgent, "kwok") {
			found = append(found, e.String())
		}
	}
	return found
}

// reinstall brings back what the other tests of the package need.
func (r *rig) reinstall(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	r.Kill(sourceController)
	r.Kill(deploymentController)
	r.Eventually(t, ctx, "the namespace of the controllers is gone or whole", func(ctx context.Context) (bool, string) {
		var n corev1.Namespace
		err := r.Admin.Get(ctx, client.ObjectKey{Name: installation.Namespace}, &n)
		return apierrors.IsNotFound(err) || err == nil && n.DeletionTimestamp.IsZero(), "terminating"
	})
	if err := installation.Install(ctx, r.CP.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{&appsv1.Deployment{}, &networkingv1.NetworkPolicy{}} {
		if err := r.Admin.DeleteAllOf(ctx, o, client.InNamespace(installation.Namespace), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Error(err)
		}
	}
	if err := r.StartControllers(context.Background()); err != nil { // they run as long as the test binary
		t.Fatal(err)
	}
}
