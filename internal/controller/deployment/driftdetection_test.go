// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// mode sets the mode of drift detection.
func mode(mode v1alpha1.DriftCorrection) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) { d.Spec.Drift = &v1alpha1.DriftOptions{Correction: mode} }
}

func foundDrift(d *v1alpha1.BundleDeployment) string {
	if d.Status.Drift == nil {
		return ""
	}
	return strings.Join(d.Status.Drift.Found, "\n")
}

// In the mode Warn drift is reported with the field and its manager, and not corrected;
// a new revision restores everything.
func TestDriftWarn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	files := fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")}
	published := r.publish(t, namespace, "app", "v1", files)
	key := r.deploy(t, namespace, "app", both(seldom, mode(v1alpha1.DriftWarn)))
	r.ready(t, key, published.Revision)
	r.patch(t, aConfigMap(namespace, "a"), `{"data":{"value":"theirs"}}`)
	want := "ConfigMap " + namespace + `/a: .data.value changed by "other-client"`
	r.until(t, key, "the status names it", func(d *v1alpha1.BundleDeployment) bool { return foundDrift(d) == want })
	r.delete(t, aConfigMap(namespace, "b"))
	d := r.until(t, key, "and what was deleted", func(d *v1alpha1.BundleDeployment) bool {
		return foundDrift(d) == want+"\nConfigMap "+namespace+"/b was deleted"
	})
	if !conditions.IsTrue(d, "Ready") {
		t.Errorf("drift that is left makes it unready:\n%s", describe(d))
	}
	r.told(t, namespace, "DriftFound: differs from the bundle, and is not corrected: "+want)
	r.handled(t, key)
	if got := r.value(t, t.Context(), namespace, "a"); got != "theirs" || r.get(t, aConfigMap(namespace, "b")) {
		t.Errorf("it was repaired: %q", got)
	}
	r.patch(t, aConfigMap(namespace, "a"), `{"data":{"value":"one"}}`)
	r.edit(t, key, mode(v1alpha1.DriftEnabled))
	r.until(t, key, "nothing differs any more", func(d *v1alpha1.BundleDeployment) bool { return d.Status.Drift == nil })
	r.eventually(t, t.Context(), "all is as the bundle has it", func(context.Context) (bool, string) {
		return r.intact(t, aConfigMap(namespace, "a")) && r.intact(t, aConfigMap(namespace, "b")), ""
	})
}

// With correction None nothing is repaired between revisions, and everything with one.
func TestDriftNone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")})
	key := r.deploy(t, namespace, "app", both(quick, mode(v1alpha1.DriftNone)))
	r.ready(t, key, first.Revision)
	r.patch(t, aConfigMap(namespace, "a"), `{"data":{"value":"theirs"}}`)
	r.looks(t, namespace, "installer", 3)
	if got := r.value(t, t.Context(), namespace, "a"); got != "theirs" {
		t.Errorf("it was repaired: %q", got)
	}
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "two")})
	r.ready(t, key, second.Revision)
	r.holds(t, namespace, "a", "one")
}

// With correction None nothing is listed at the interval, since nothing is compared. Health is still
// checked, one object at a time if it is not watched.
func TestDriftNoneListsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	r.create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "installs"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"", "apps"}, Resources: []string{"configmaps", "deployments"}, Verbs: []string{"get", "list", "create", "patch", "delete"}},
		{APIGroups: []string{"", "apps"}, Resources: []string{"pods", "events", "replicasets"}, Verbs: []string{"get", "list"}},
	}})
	r.bind(t, namespace, "installs", "installs")
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": workload("web", "example.org/web:1")})
	key := r.deploy(t, namespace, "app", both(both(quick, mode(v1alpha1.DriftNone)), func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "installs" }))
	r.ready(t, key, first.Revision)
	began := r.mark(t)
	r.looks(t, namespace, "installs", 4)
	reads := 0
	for _, e := range r.asked(t, namespace, began) {
		if e.ImpersonatedUser == "" {
			continue
		}
		if reads++; e.Verb != "get" || e.Resource != "deployments" {
			t.Errorf("asked although nothing is compared: %s", e)
		}
	}
	t.Logf("%d reads in four intervals", reads)
	if reads < 2 {
		t.Errorf("health was looked at %d times in four intervals", reads)
	}
	r.patch(t, aConfigMap(namespace, "a"), `{"data":{"value":"theirs"}}`)
	r.killPods(t, namespace)
	r.unready(t, key, v1alpha1.ReasonHealthFailed)
	r.revivePods(t, namespace)
	r.ready(t, key, first.Revision)
	if got := r.value(t, t.Context(), namespace, "a"); got != "theirs" {
		t.Errorf("it was repaired: %q", got)
	}
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": workload("web", "example.org/web:2")})
	r.ready(t, key, second.Revision)
	r.holds(t, namespace, "a", "one")
}

// An ignored field is not compared; the other fields of the object are.
func TestF25IgnoredFieldsSurvive(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")})
	key := r.deploy(t, namespace, "app", both(seldom, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Drift = &v1alpha1.DriftOptions{Ignore: []v1alpha1.IgnoreRule{{
			Paths: []string{"/data/value"}, Target: &v1alpha1.ObjectSelector{Kind: "ConfigMap", Name: "a"},
		}}}
	}))
	r.ready(t, key, published.Revision)
	if got := r.value(t, t.Context(), namespace, "a"); got != "one" {
		t.Errorf("on creation it is %q", got)
	}
	r.patch(t, aConfigMap(namespace, "a"), `{"data":{"value":"theirs"}}`)
	r.patch(t, aConfigMap(namespace, "b"), `{"data":{"value":"theirs"}}`)
	r.holds(t, namespace, "b", "one")
	r.patch(t, aConfigMap(namespace, "a"), `{"metadata":{"labels":null}}`)
	r.eventually(t, t.Context(), "the labels are back", func(context.Context) (bool, string) {
		return r.must(t, aConfigMap(namespace, "a")).GetLabels()[v1alpha1.DeploymentLabel] == "app", ""
	})
	if got := r.value(t, t.Context(), namespace, "a"); got != "theirs" {
		t.Errorf("their value became %q", got)
	}
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Drift.Ignore[0].Target.Kind = "("
	})
	r.unready(t, key, v1alpha1.ReasonInvalidSpec)
}

// A client that changes a field after each repair is named, and repairs become rare.
func TestF25FightingManagerIsNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", seldom)
	r.ready(t, key, published.Revision)
	began := r.mark(t)
	end := time.Now().Add(10 * time.Second)
	for i := 0; time.Now().Before(end); i++ {
		if r.value(t, t.Context(), namespace, "a") == "one" {
			r.patch(t, aConfigMap(namespace, "a"), fmt.Sprintf(`{"data":{"value":"theirs-%d"}}`, i))
		}
		time.Sleep(50 * time.Millisecond) // as a controller would
	}
	if got := len(r.writes(t, namespace, began)); got < 3 || got > 6 {
		t.Errorf("%d writes in ten seconds of a conflict, want three at once and one or two later", got)
	}
	r.told(t, namespace, "DriftContested: ConfigMap "+namespace+`/a: .data.value changed by "other-client", again and again`)
	r.until(t, key, "the status tells", func(d *v1alpha1.BundleDeployment) bool {
		return strings.Contains(foundDrift(d), `"other-client", again and again`)
	})
	r.holds(t, namespace, "a", "one")
}

// Without the permission to watch, drift is repaired at the interval, and the status
// says so; also when the permission is removed later.
func TestT5WithoutPermissionToWatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "watcher"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "create", "patch", "delete"}},
	}}
	r.create(t, role)
	r.bind(t, namespace, "watcher", "watcher")
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", both(quick, func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "watcher" }))
	r.ready(t, key, published.Revision)
	r.until(t, key, "the status names the gap", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Drift != nil && len(d.Status.Drift.AtInterval) == 1 && strings.Contains(d.Status.Drift.AtInterval[0], "configmaps in "+namespace+": service account "+namespace+"/watcher may not list and watch them")
	})
	r.patch(t, aConfigMap(namespace, "a"), `{"data":{"value":"theirs"}}`)
	r.holds(t, namespace, "a", "one")
	before := role.DeepCopy()
	role.Rules[0].Verbs = append(role.Rules[0].Verbs, "watch")
	if err := r.admin.Patch(t.Context(), role, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	r.until(t, key, "it is watched", func(d *v1alpha1.BundleDeployment) bool { return d.Status.Drift == nil })
}

// bind makes a ServiceAccount with a role.
func (r *rig) bind(t *testing.T, namespace, account, role string) {
	t.Helper()
	sa := object("v1", "ServiceAccount", namespace, account)
	r.create(t, sa)
	r.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: account}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
	})
}
