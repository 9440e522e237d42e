// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// object creates an object in the namespace from YAML; with a deployment's name it has its labels.
func (c testCluster) object(deployment, text string) *unstructured.Unstructured {
	c.T.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		c.T.Fatal(err)
	}
	o.SetNamespace(c.Namespace)
	if deployment != "" {
		o.SetLabels(inventory.Owner{Namespace: c.Namespace, Name: deployment}.Labels())
	}
	if err := c.AnyClient().Create(c.T.Context(), o); err != nil {
		c.T.Fatal(err)
	}
	return o
}

// lists adds objects to a deployment's inventory.
func lists(t *testing.T, objects ...*unstructured.Unstructured) func(*v1alpha1.BundleDeployment) {
	t.Helper()
	entries := make([]inventory.Entry, 0, len(objects))
	for _, o := range objects {
		entries = append(entries, inventory.Entry{ID: inventory.IDOf(o), Version: o.GroupVersionKind().Version})
	}
	encoded, err := inventory.New("cluster", entries...).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return func(d *v1alpha1.BundleDeployment) { d.Status.Inventory = encoded }
}

// missing is an object that does not exist.
func (c testCluster) missing(apiVersion, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(c.Namespace)
	o.SetName(name)
	return o
}

// web is a Deployment with so many Pods; kwok runs them.
func web(name string, annotations string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `}
spec:
  replicas: 1
  selector: {matchLabels: {app: ` + name + `}}
  template:
    metadata: {labels: {app: ` + name + `}, annotations: {` + annotations + `}}
    spec: {containers: [{name: main, image: example.org/web:v1}, {name: side, image: example.org/side:v1}]}`
}

func objectKey(o metav1.ObjectMeta) client.ObjectKey {
	return client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
}

// scale sets the replicas of a Deployment.
func (c testCluster) scale(name string, replicas int) {
	c.T.Helper()
	o := c.missing("apps/v1", "Deployment", name)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := c.AnyClient().Patch(c.T.Context(), o, patch); err != nil {
		c.T.Fatal(err)
	}
}
