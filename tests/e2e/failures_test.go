// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// failure is a mistake that people make, and what `satchel status` has to say about it: the cause and the remedy.
type failure struct {
	name    string
	objects string // of the bundle; one ConfigMap without them
	change  func(*v1alpha1.BundleDeployment)
	says    []string
}

// TestStatusNamesTheCauseAndTheRemedy provokes what goes wrong most often, all at once, and reads `satchel status`.
func TestStatusNamesTheCauseAndTheRemedy(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	r.createForFailures(t, namespace)
	failures := r.failures(t)
	for _, f := range failures {
		objects := f.objects
		if objects == "" {
			objects = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + f.name + "}\n"
		}
		image := r.Push(t, "failures/"+f.name+":v1", fstest.MapFS{"manifest.yaml": &fstest.MapFile{Data: []byte(objects)}})
		r.Deploy(t, namespace, f.name, image, f.change)
	}
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) { r.statusSays(t, namespace, f) })
	}
}

// statusSays waits until the status of a failure holds all its texts.
func (r *rig) statusSays(t *testing.T, namespace string, f failure) {
	t.Helper()
	var status string
	r.Eventually(t, t.Context(), "status names cause and remedy", func(context.Context) (bool, string) {
		status = r.satchel(t, namespace, "status", f.name).out
		for _, text := range f.says {
			if !strings.Contains(status, text) {
				return false, "without " + text + ":\n" + status
			}
		}
		return true, ""
	})
	t.Logf("satchel status %s\n%s", f.name, status)
}

// createForFailures creates a ServiceAccount that may do nothing, and a Service of a Helm release.
func (r *rig) createForFailures(t *testing.T, namespace string) {
	t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "shop", Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"},
			Annotations: map[string]string{"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": namespace},
		},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if err := r.Admin.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	if err := r.Admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "guest"}}); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) failures(t *testing.T) []failure {
	t.Helper()
	closed, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	image := func(change func(*v1alpha1.ImageSource)) func(*v1alpha1.BundleDeployment) {
		return func(d *v1alpha1.BundleDeployment) { change(d.Spec.Source.Sources[0].Image) }
	}
	ref := func(to string) func(*v1alpha1.BundleDeployment) {
		return image(func(i *v1alpha1.ImageSource) { i.Reference = to })
	}
	return []failure{
		{name: "registry-refuses", change: ref(closed + "/app:v1"), says: []string{"connection refused", "check the host and the port"}},
		{name: "plain-http", change: image(func(i *v1alpha1.ImageSource) { i.Insecure = false }), says: []string{"speaks HTTP without TLS", "set insecure"}},
		{name: "no-such-tag", change: ref(r.Registry.Host() + "/failures/no-such-tag:v2"), says: []string{"no-such-tag:v2: not found", "check the tag"}},
		{name: "no-such-repository", change: ref(r.Registry.Host() + "/failures/nowhere:v1"), says: []string{"nowhere:v1: not found", "Correct the image"}},
		{name: "no-such-path", change: func(d *v1alpha1.BundleDeployment) { d.Spec.Path = "deploy/production" }, says: []string{`no folder "deploy/production"`, "correct spec.path"}},
		{name: "unknown-kind", objects: "apiVersion: example.org/v1\nkind: Gadget\nmetadata: {name: gadget}\n", says: []string{"does not know kind Gadget", "spec.apply.optionalKinds"}},
		{name: "no-permission", change: func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "guest" }, says: []string{"cannot, in namespace", "kind: RoleBinding"}},
		{name: "no-service-account", change: func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "missing" }, says: []string{"missing does not exist", "create it, or correct spec.serviceAccountName"}},
		{name: "no-namespace", objects: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: far, namespace: nowhere}\n", says: []string{`namespace "nowhere" does not exist`, "create it"}},
		{name: "no-node", objects: unschedulable, says: []string{"Pod picky", "cannot be scheduled", "node affinity/selector"}},
		{name: "no-values", change: func(d *v1alpha1.BundleDeployment) {
			d.Spec.Processors = []v1alpha1.Processor{{Variables: &v1alpha1.VariablesProcessor{
				ValuesFrom: []v1alpha1.VariablesReference{{Kind: "Secret", Name: "credentials"}},
			}}}
		}, says: []string{"credentials does not exist", "create it, or correct spec.processors[0].variables.valuesFrom[0]"}},
		{name: "helm-release", objects: "apiVersion: v1\nkind: Service\nmetadata: {name: shop}\nspec: {ports: [{port: 80}]}\n", says: []string{"belongs to Helm release", "kubectl satchel-migrate adopt helm-release"}},
		{name: "invalid-object", objects: "apiVersion: v1\nkind: Service\nmetadata: {name: broken}\nspec: {ports: [{port: 0}]}\n", says: []string{"spec.ports[0].port: Invalid value", "Correct the object in the bundle"}},
	}
}

// unschedulable is a Deployment with a Pod that fits on no node.
const unschedulable = `apiVersion: apps/v1
kind: Deployment
metadata: {name: picky}
spec:
  selector: {matchLabels: {app: picky}}
  template:
    metadata: {labels: {app: picky}}
    spec:
      nodeSelector: {disk: diamond}
      containers: [{name: app, image: example.org/app:v1}]
`
