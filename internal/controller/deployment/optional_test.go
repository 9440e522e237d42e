// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// parsed is the object of a manifest.
func parsed(t *testing.T, manifest *fstest.MapFile) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(manifest.Data, &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestOptionalKinds installs an object of a kind that appears later and disappears again, as a ServiceAccount without
// permissions on that kind until it appears, and with a long interval.
func TestOptionalKinds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	group := namespace + ".optional.example.org"
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}},
	}}
	r.create(t, role)
	if err := installation.Account(t.Context(), r.admin, namespace, "installer", namespace, ""); err != nil {
		t.Fatal(err)
	}
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{
		"a.yaml": configMap("a", "1"), "b.yaml": gadget(group, "late"), "c.yaml": gadget(group, "later"),
	})
	key := r.deploy(t, namespace, "app", rarely)
	r.until(t, key, "the kind is missing", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.GetReason(d, "Ready") == v1alpha1.ReasonPlanRefused && strings.Contains(conditions.GetMessage(d, "Ready"), "Gadget")
	})
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Apply.OptionalKinds = []v1alpha1.OptionalKind{{Group: group, Kind: "Gadget"}}
	})
	d := r.ready(t, key, published.Revision)
	if got := *d.Status.Objects; got != (v1alpha1.ObjectCounts{Applied: 1, Skipped: 2}) {
		t.Errorf("status.objects is %+v", got)
	}
	if said := conditions.GetMessage(d, v1alpha1.PlannedCondition); !strings.Contains(said, "2 of spec.apply.optionalKinds left out until their kinds are served: Gadget."+group) {
		t.Errorf("Planned does not name what is left out: %s", said)
	}

	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"gadgets"}, Verbs: []string{"*"}})
	if err := r.admin.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	definition := parsed(t, crd(group))
	began := time.Now()
	r.create(t, definition)
	late := object(group+"/v1", "Gadget", namespace, "late")
	r.until(t, key, "both are applied", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.IsTrue(d, "Ready") && *d.Status.Objects == v1alpha1.ObjectCounts{Applied: 3}
	})
	took := time.Since(began)
	t.Logf("applied %s after the CRD was created", took.Round(time.Millisecond))
	if took > 30*time.Second {
		t.Errorf("took %s, want at most 5 s", took)
	}
	r.must(t, late)

	r.delete(t, definition)
	r.gone(t, late)
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Health.Timeout = v1alpha1.Duration{Duration: time.Minute} }) // look again
	r.until(t, key, "they are left out again", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.IsTrue(d, "Ready") && d.Status.ObservedGeneration == d.Generation && d.Status.Objects.Skipped == 2
	})
}
