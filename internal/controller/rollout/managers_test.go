// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/tests/installation"
)

func (r *rig) object(text string) *unstructured.Unstructured {
	r.t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		r.t.Fatal(err)
	}
	object.SetNamespace(r.namespace)
	return object
}

// report writes the status of an object.
func (r *rig) report(object *unstructured.Unstructured, status string) {
	r.t.Helper()
	text := `{"status":` + status + `}`
	if err := shared.admin.Status().Patch(r.t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(text))); err != nil {
		r.t.Fatal(err)
	}
}

// TestClusterProfiles takes clusters from ClusterProfiles, with variables from their labels, with the CRD of cluster-inventory-api.
// A cluster of which the control plane is not healthy is not waited for.
func TestClusterProfiles(t *testing.T) {
	r := newRig(t)
	if err := installation.InstallClusterProfiles(t.Context(), shared.admin); err != nil {
		t.Fatal(err)
	}
	r.publish("v1")
	all := map[string]*unstructured.Unstructured{}
	for on, ring := range map[string]string{"c1": "one", "c2": "two", "c3": "two"} {
		all[on] = r.object(`{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ClusterProfile, metadata: {name: ` + on + `, labels: {ring: ` + ring + `, region: eu-` + on + `}}, spec: {clusterManager: {name: test}}}`)
		r.put(all[on])
	}
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Clusters = []v1alpha1.RolloutClusters{{ClusterProfiles: &v1alpha1.ClusterProfileClusters{AccessProvider: "secret"}}}
		spec.Variables = []v1alpha1.RolloutVariable{{Name: "region", Label: "region"}}
		spec.Template.Spec = apiextensionsv1.JSON{Raw: []byte(`{"serviceAccountName":"deployer","path":"overlays/$(region)"}`)}
	})
	r.until("the list is denied", func(o *v1alpha1.BundleRollout) bool { return condition(o, "ClustersKnown") == "False Unauthorized" })
	if err := installation.Account(t.Context(), shared.admin, r.namespace, "deployer", "cluster-admin", ""); err != nil {
		t.Fatal(err)
	}
	r.until("v1 complete", complete("v1"))
	child := r.children()["c2"]
	if ref := effective.RemoteCluster(child.Spec.Target.ClusterReference); ref == nil || ref.ClusterProfileRef == nil || *ref.ClusterProfileRef != (v1alpha1.ClusterProfileReference{Name: "c2", AccessProvider: "secret"}) {
		text, _ := json.Marshal(ref)
		t.Errorf("kubeConfig of c2: %s", text)
	}
	if child.Spec.Path != "overlays/eu-c2" {
		t.Errorf("path of c2: %s", child.Spec.Path)
	}
	r.report(all["c3"], `{"conditions":[{"type":"ControlPlaneHealthy","status":"False","reason":"Down","message":"down","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`)
	r.edit(func(o *v1alpha1.BundleRollout) {
		o.Spec.Strategy.Unreachable.After = v1alpha1.Duration{Duration: 1e9}
	})
	r.until("c3 cannot be reached", func(o *v1alpha1.BundleRollout) bool { return o.Status.Clusters.Unreachable == 1 })
	r.publish("v2")
	r.until("v2 complete", complete("v2"))
	if got := r.versions("v1", "v2"); got["c2"] != "v2" || got["c3"] != "v1" {
		t.Errorf("versions: %v", got)
	}
}

// TestClusterAPI takes clusters from Cluster API, with its CRD.
func TestClusterAPI(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	if err := installation.Account(t.Context(), shared.admin, r.namespace, "deployer", "cluster-admin", ""); err != nil {
		t.Fatal(err)
	}
	if err := installation.InstallKind(t.Context(), shared.admin, "testdata/clusters.cluster.x-k8s.io.yaml"); err != nil {
		t.Fatal(err)
	}
	for on, ring := range map[string]string{"c1": "one", "c2": "two", "other": ""} {
		r.put(r.object(`{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: ` + on + `, labels: {ring: "` + ring + `"}}, spec: {}}`))
	}
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Clusters = []v1alpha1.RolloutClusters{{ClusterAPI: &v1alpha1.ClusterAPIClusters{Selector: metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "ring", Operator: metav1.LabelSelectorOpIn, Values: []string{"one", "two"}}},
		}}}}
	})
	r.until("v1 complete", complete("v1"))
	children := r.children()
	if len(children) != 2 {
		t.Errorf("%d children", len(children))
	}
	want := v1alpha1.KubeConfigSecretReference{Name: "c2-kubeconfig", Key: "value"}
	if ref := effective.RemoteCluster(children["c2"].Spec.Target.ClusterReference); ref == nil || ref.KubeConfig.SecretRef != want || ref.ClusterProfileRef != nil {
		t.Errorf("kubeConfig of c2: %v", ref)
	}
}
