// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// secret is a Secret of a bundle: its deletion waits as that of a volume does, and it needs no storage to be healthy.
func secret(name string) *fstest.MapFile {
	return file("apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\nstringData: {key: value}")
}

// bundleOf has the listed objects: those with a name that begins with "p" are Secrets, the others ConfigMaps.
func bundleOf(names ...string) fstest.MapFS {
	files := fstest.MapFS{}
	for _, name := range names {
		files[name+".yaml"] = configMap(name, "one")
		if strings.HasPrefix(name, "p") {
			files[name+".yaml"] = secret(name)
		}
	}
	return files
}

func (r *rig) uids(t *testing.T, namespace string, names ...string) map[string]types.UID {
	t.Helper()
	found := map[string]types.UID{}
	for _, name := range names {
		live := aConfigMap(namespace, name)
		if strings.HasPrefix(name, "p") {
			live = object("v1", "Secret", namespace, name)
		}
		found[name] = r.must(t, live).GetUID()
	}
	return found
}

// applied waits until a deployment has applied a revision and lists so many objects.
func (r *rig) applied(t *testing.T, namespace, name, revision string, count int) {
	t.Helper()
	r.until(t, types.NamespacedName{Namespace: namespace, Name: name}, "applied "+revision, func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Applied.Revision == revision && d.Status.Inventory.Count == int32(count) && d.Status.Attempted.Revision == revision //nolint:gosec // small
	})
}

// An object that moves from one deployment to another keeps its UID, in whatever order the two change.
func TestF55Moves(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, steps := range map[string][]string{ // which deployment changes, and to what
		"one commit, the giver first":        {"a=ca", "b=cb cx px"},
		"one commit, the taker first":        {"b=cb cx px", "a=ca"},
		"taker first, seen to be refused":    {"b=cb cx px", "refused b", "a=ca"},
		"swap":                               {"a=ca cy py", "b=cb cx px"},
		"swap, both refused":                 {"a=ca cy py", "refused a", "b=cb cx px"},
		"the giver is deleted":               {"b=cb cx px", "refused b", "delete a"},
		"all of it, as the giver is deleted": {"b=cb cx px cy py ca", "refused b", "delete a"},
		"back and forth":                     {"b=cb cx px", "a=ca", "applied b", "a=ca cx px", "b=cb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			bundles := map[string][]string{"a": {"ca", "cx", "px"}, "b": {"cb", "cy", "py"}}
			revisions := map[string]string{}
			for _, name := range []string{"a", "b"} {
				revisions[name] = r.publish(t, namespace, name, "v1", bundleOf(bundles[name]...)).Revision
				key := r.deploy(t, namespace, name, quick)
				r.until(t, key, "applied", func(d *v1alpha1.BundleDeployment) bool { return d.Status.Applied.Revision == revisions[name] })
			}
			if !strings.Contains(name, "swap") {
				bundles["b"] = []string{"cb"} // cy and py are pruned, unless a step brings them back
			}
			before := r.uids(t, namespace, "ca", "cx", "px", "cb", "cy", "py")
			for at, step := range steps {
				what, to, change := strings.Cut(step, "=")
				switch {
				case change:
					bundles[what] = strings.Fields(to)
					revisions[what] = r.publish(t, namespace, what, fmt.Sprintf("v%d", at+2), bundleOf(bundles[what]...)).Revision
				case what == "delete a":
					r.remove(t, types.NamespacedName{Namespace: namespace, Name: "a"})
					delete(bundles, "a")
				case strings.HasPrefix(what, "refused "):
					name := strings.TrimPrefix(what, "refused ")
					r.until(t, types.NamespacedName{Namespace: namespace, Name: name}, "refused", func(d *v1alpha1.BundleDeployment) bool {
						return conditions.GetReason(d, v1alpha1.PlannedCondition) == v1alpha1.ReasonPlanRefused && d.Status.Attempted.Revision == revisions[name]
					})
				default:
					name := strings.TrimPrefix(what, "applied ")
					r.applied(t, namespace, name, revisions[name], len(bundles[name]))
				}
			}
			for name, objects := range bundles {
				r.applied(t, namespace, name, revisions[name], len(objects))
				for object, uid := range r.uids(t, namespace, objects...) {
					if uid != before[object] {
						t.Errorf("%s of %s was deleted and created again", object, name)
					}
				}
			}
		})
	}
}

// What a deployment of another namespace wants, or one with a ServiceAccount that may not write the object, is deleted as before.
func TestF55NotGivenToOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	t.Run("another namespace", func(t *testing.T) {
		t.Parallel()
		namespace, other := r.namespace(t), r.namespace(t)
		role := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: other, Name: "installer"}}}
		if err := r.admin.Create(t.Context(), role); err != nil {
			t.Fatal(err)
		}
		first := r.publish(t, namespace, "a", "v1", bundleOf("ca", "cx"))
		key := r.deploy(t, namespace, "a", quick)
		r.ready(t, key, first.Revision)
		before := r.uids(t, namespace, "cx")
		r.publish(t, other, "b", "v1", fstest.MapFS{"x.yaml": file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cx, namespace: " + namespace + "}")})
		taker := r.deploy(t, other, "b", quick)
		r.unready(t, taker, v1alpha1.ReasonPlanRefused)
		second := r.publish(t, namespace, "a", "v2", bundleOf("ca"))
		r.applied(t, namespace, "a", second.Revision, 1)
		r.remove(t, taker)
		var live corev1.ConfigMap
		if err := r.admin.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "cx"}, &live); !apierrors.IsNotFound(err) && live.UID == before["cx"] {
			t.Errorf("it was kept for a deployment of another namespace: %v", err)
		}
	})
	t.Run("not permitted", func(t *testing.T) {
		t.Parallel()
		namespace := r.namespace(t)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"}}
		role := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "reader"}}}
		if err := r.admin.Create(t.Context(), account); err != nil {
			t.Fatal(err)
		}
		if err := r.admin.Create(t.Context(), role); err != nil {
			t.Fatal(err)
		}
		first := r.publish(t, namespace, "a", "v1", bundleOf("ca", "cx"))
		key := r.deploy(t, namespace, "a", quick)
		r.ready(t, key, first.Revision)
		r.publish(t, namespace, "b", "v1", bundleOf("cx"))
		taker := r.deploy(t, namespace, "b", both(quick, func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "reader" }))
		r.unready(t, taker, v1alpha1.ReasonPlanRefused)
		second := r.publish(t, namespace, "a", "v2", bundleOf("ca"))
		r.applied(t, namespace, "a", second.Revision, 1)
		r.gone(t, aConfigMap(namespace, "cx"))
	})
}

// Random moves between three deployments, whatever order they are reconciled in: no UID of an object in both unions changes.
func TestF55RandomMoves(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	random := rand.New(rand.NewPCG(55, 1)) //nolint:gosec // a fixed sequence
	names := []string{"a", "b", "c"}
	objects := []string{"c0", "c1", "p2", "p3", "c4", "p5"}
	// The folders of one repository: a commit that moves an object reaches the three sources one after the other.
	for _, name := range names {
		source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		source.Spec.Sources = []v1alpha1.Source{{Git: &v1alpha1.GitSource{URL: "https://git.example.org/shop", Path: name}}}
		r.create(t, source)
	}
	var before map[string]types.UID
	rounds := 6
	if releaseSuite() {
		rounds = 60
	}
	for round := range rounds {
		assigned := map[string][]string{}
		for _, name := range names {
			assigned[name] = []string{"own-" + name}
		}
		for _, object := range objects {
			name := names[random.IntN(len(names))]
			assigned[name] = append(assigned[name], object)
		}
		revisions := map[string]string{}
		for _, at := range random.Perm(len(names)) {
			name := names[at]
			revisions[name] = r.publish(t, namespace, name, fmt.Sprintf("v%d", round+1), bundleOf(assigned[name]...)).Revision
			if round == 0 {
				r.deploy(t, namespace, name, quick)
			}
		}
		for _, name := range names {
			r.applied(t, namespace, name, revisions[name], len(assigned[name]))
		}
		now := r.uids(t, namespace, objects...)
		for name, uid := range before {
			if now[name] != uid {
				t.Errorf("round %d: %s was deleted and created again", round, name)
			}
		}
		before = now
	}
}
