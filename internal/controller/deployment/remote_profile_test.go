// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/runtime/conditions"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/installation"
)

// A ClusterProfile leads to its cluster with the credentials of the Secret that it names, both read as the ServiceAccount of the
// deployment (R28).
func TestClusterProfile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.newAbroad(t)
	if err := installation.InstallClusterProfiles(t.Context(), r.admin); err != nil {
		t.Fatal(err)
	}
	text := a.kubeconfig(t, "agent", nil)
	a.store(t, map[string]string{"config": text})
	published := r.publish(t, a.namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, a.namespace, "app", func(d *v1alpha1.BundleDeployment) {
		a.goes(d)
		d.Spec.Target.ClusterReference = v1alpha1.ClusterReference{ClusterProfileRef: &v1alpha1.ClusterProfileReference{Name: "prod"}}
	})
	says := func(reason, text string) {
		t.Helper()
		text = strings.ReplaceAll(text, "NS", a.namespace)
		r.until(t, key, reason+": "+text, func(d *v1alpha1.BundleDeployment) bool {
			return conditions.GetReason(d, "Ready") == reason && strings.Contains(conditions.GetMessage(d, "Ready"), text)
		})
	}
	says(v1alpha1.ReasonKubeConfigNotFound, "clusterprofile NS/prod: NS/installer may not get it")
	a.grant(t, a.namespace, "profiles", rbacv1.PolicyRule{APIGroups: []string{"multicluster.x-k8s.io"}, Resources: []string{"clusterprofiles"}, Verbs: []string{"get"}})
	binding := rbacv1.Subject{Kind: "ServiceAccount", Namespace: a.namespace, Name: "installer"}
	r.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "reads-profiles"}, Subjects: []rbacv1.Subject{binding},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "profiles"},
	})
	says(v1alpha1.ReasonKubeConfigNotFound, "clusterprofile NS/prod: it does not exist")
	profile := &unstructured.Unstructured{}
	profile.SetAPIVersion("multicluster.x-k8s.io/v1alpha1")
	profile.SetKind("ClusterProfile")
	profile.SetNamespace(a.namespace)
	profile.SetName("prod")
	profile.Object["spec"] = map[string]any{"clusterManager": map[string]any{"name": "test"}}
	r.create(t, profile)
	says(v1alpha1.ReasonKubeConfigNotFound, "it has no access provider")
	access := accessOf(t, text)
	server := access["server"]
	access["server"] = "https://169.254.169.254"
	a.provides(t, profile, access)
	says(v1alpha1.ReasonKubeConfigRefused, "169.254.169.254")
	access["server"] = server
	a.provides(t, profile, access)
	d := r.ready(t, key, published.Revision)
	if d.Status.Inventory == nil || len(d.Status.Inventory.Entries) != 1 {
		t.Errorf("inventory: %v", d.Status.Inventory)
	}
	r.remove(t, key) // while the permissions exist
}

// accessOf is the cluster of a kubeconfig, with the Secret prod as its credentials.
func accessOf(t *testing.T, kubeconfig string) map[string]any {
	t.Helper()
	var file struct {
		Clusters []struct {
			Cluster map[string]any `json:"cluster"`
		} `json:"clusters"`
	}
	if err := yaml.Unmarshal([]byte(kubeconfig), &file); err != nil {
		t.Fatal(err)
	}
	access := file.Clusters[0].Cluster
	access["extensions"] = []any{map[string]any{
		"name": "client.authentication.k8s.io/exec", "extension": map[string]any{"name": "prod", "key": "config"},
	}}
	return access
}

// provides reports an access provider, as a cluster manager does.
func (a *abroad) provides(t *testing.T, profile *unstructured.Unstructured, access map[string]any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"accessProviders": []any{map[string]any{"name": "secret", "cluster": access}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.admin.Status().Patch(t.Context(), profile, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
}
