// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/cli"
	"github.com/satchel-dev/satchel/internal/cli/preview"
	"github.com/satchel-dev/satchel/tests/clirig"
)

// situations is how many random ones are compared, and firstSeed the seed of the first.
const (
	situations = 40
	firstSeed  = 38
)

// The preview of a random situation is what the controller then does: it creates, changes, recreates and deletes the same objects, or
// refuses the plan.
func TestPreviewIsWhatIsDone(t *testing.T) {
	r := newRig(t)
	seen := map[string]int{}
	outcomes := make(chan map[string]string, situations)
	t.Run("situations", func(t *testing.T) {
		for i := range situations {
			t.Run(fmt.Sprint(firstSeed+i), func(t *testing.T) {
				t.Parallel()
				s := situation{rig: r, random: rand.New(rand.NewPCG(firstSeed, uint64(firstSeed+i))), namespace: r.namespace(t)}
				outcomes <- s.compare(t)
			})
		}
	})
	close(outcomes)
	for outcome := range outcomes {
		for _, verb := range outcome {
			seen[verb]++
		}
	}
	t.Logf("%d situations: %v", situations, seen)
	for _, verb := range []string{"created", "changed", "recreated", "deleted", refusal} {
		if seen[verb] == 0 {
			t.Errorf("nothing is %s: the situations are too much alike", verb)
		}
	}
}

// refusal is what becomes of a plan that is refused.
const refusal = "refused"

// situation is what is installed, what other clients did to it, and the spec and the bundle that come next.
type situation struct {
	*rig

	random    *rand.Rand
	namespace string
}

// compare installs a bundle, changes what is there, and compares the preview of another bundle with what becomes of the objects.
func (s situation) compare(t *testing.T) map[string]string {
	t.Helper()
	s.limitedAccount(t)
	names := []string{"a", "b", "c", "d", "e", "f"}
	first := s.bundle(names)
	s.publish(t, s.namespace, "app", "v1", first)
	key := s.deploy(t, s.namespace, "app", s.spec)
	t.Cleanup(func() { // so that it can be removed
		d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		account := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"serviceAccountName":"installer"}}`))
		if err := s.admin.Patch(context.WithoutCancel(t.Context()), d, account); err != nil {
			t.Error(err)
		}
	})
	if s.random.IntN(4) > 0 {
		s.until(t, key, "the first bundle is tried", settledAt("", s.published(t)))
	}
	s.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true })
	s.until(t, key, "it is suspended", func(*v1alpha1.BundleDeployment) bool { return true })
	s.disturb(t, names)
	next := s.bundle(names)
	if s.random.IntN(10) == 0 {
		next["itself.yaml"] = file("apiVersion: satchel.dev/v1alpha1\nkind: BundleDeployment\nmetadata: {name: app}\nspec: {serviceAccountName: installer, sourceRef: {kind: BundleSource, name: app}}\n")
	}
	s.publish(t, s.namespace, "app", "v2", next)
	if s.random.IntN(3) == 0 {
		s.edit(t, key, s.spec)
	}
	before := s.objects(t)
	previewed, text := s.preview(t)
	s.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = false })
	d := s.until(t, key, "the second bundle is tried", settledAt(v1alpha1.ReasonSuspended, s.published(t)))
	done := changesBetween(before, s.objects(t))
	if conditions.IsFalse(d, meta.ReadyCondition) {
		done = map[string]string{"plan": refusal} // what else is done keeps the applied revision from drifting
	}
	if diff := cmp.Diff(previewed, done); diff != "" {
		t.Errorf("the preview (-) is not what was done (+):\n%s\n%s\n%s", diff, describe(d), text)
	}
	return done
}

// limitedAccount makes a ServiceAccount that may not write roles.
func (s situation) limitedAccount(t *testing.T) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "limited"}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "limited"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "limited"}}}
	for _, object := range []client.Object{account, binding} {
		if err := s.admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// spec chooses what the deployment permits.
func (s situation) spec(d *v1alpha1.BundleDeployment) {
	d.Spec.Apply.CollisionProtection = pick(s.random, v1alpha1.CollisionPrevent, v1alpha1.CollisionPrevent, v1alpha1.CollisionNone)
	d.Spec.Apply.Recreate = pick(s.random, v1alpha1.RecreateNone, v1alpha1.RecreateOnImmutableChange)
	d.Spec.Prune.Limit = pick(s.random, nil, &intstr.IntOrString{Type: intstr.String, StrVal: "100%"})
	d.Spec.ServiceAccountName = pick(s.random, "installer", "installer", "installer", "limited")
}

// bundle has some of the objects, each with one of two contents.
func (s situation) bundle(names []string) fstest.MapFS {
	files := fstest.MapFS{"always.yaml": configMap("always", "there")}
	for _, name := range names {
		content := pick(s.random, "one", "two")
		switch s.random.IntN(6) {
		case 0, 1, 2:
			files[name+".yaml"] = configMap(name, content)
		case 3:
			files[name+".yaml"] = file(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fixed-%s}\nimmutable: true\ndata: {key: %s}\n", name, content))
		case 4:
			files[name+".yaml"] = file(fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: %s}\nrules: [{apiGroups: [\"\"], resources: [configmaps], resourceNames: [%s], verbs: [get]}]\n", name, content))
		}
	}
	return files
}

// disturb deletes, changes and creates objects as another client.
func (s situation) disturb(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
		err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		there := err == nil
		switch choice := s.random.IntN(8); {
		case choice == 0 && there:
			err = s.admin.Delete(t.Context(), object)
		case choice == 1 && there:
			object.Data = map[string]string{"value": "of another client"}
			err = s.admin.Update(t.Context(), object)
		case choice == 2 && there:
			object.Annotations = map[string]string{"example.org/note": "of another client"}
			err = s.admin.Update(t.Context(), object)
		case choice == 3 && !there:
			object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
			err = s.admin.Create(t.Context(), object)
		default:
			err = nil
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// pick chooses one.
func pick[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

// published is the revision of the source.
func (s situation) published(t *testing.T) string {
	t.Helper()
	var source v1alpha1.BundleSource
	if err := s.admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "app"}, &source); err != nil {
		t.Fatal(err)
	}
	return source.Status.Artifact.Revision
}

// settledAt tells that a revision was installed or refused, for another reason than one.
func settledAt(reason, revision string) func(*v1alpha1.BundleDeployment) bool {
	return func(d *v1alpha1.BundleDeployment) bool {
		if conditions.IsTrue(d, meta.ReadyCondition) {
			return d.Status.Healthy.Revision == revision
		}
		failed := conditions.GetReason(d, meta.ReadyCondition)
		return conditions.IsFalse(d, meta.ReadyCondition) && failed != reason && failed != v1alpha1.ReasonSourceNotReady && d.Status.Attempted.Revision == revision
	}
}

// stored is what tells whether an object was changed or recreated.
type stored struct {
	uid     types.UID
	version string
}

// objects are the ConfigMaps and Roles of the namespace.
func (s situation) objects(t *testing.T) map[string]stored {
	t.Helper()
	found := map[string]stored{}
	for kind, list := range map[string]client.ObjectList{"ConfigMap": &corev1.ConfigMapList{}, "Role": &rbacv1.RoleList{}} {
		if err := s.admin.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			t.Fatal(err)
		}
		switch of := list.(type) {
		case *corev1.ConfigMapList:
			for _, one := range of.Items {
				found[kind+" "+one.Name] = stored{one.UID, one.ResourceVersion}
			}
		case *rbacv1.RoleList:
			for _, one := range of.Items {
				found[kind+" "+one.Name] = stored{one.UID, one.ResourceVersion}
			}
		}
	}
	return found
}

// changesBetween tells what became of each object that is not as before.
func changesBetween(before, after map[string]stored) map[string]string {
	changes := map[string]string{}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after))) {
		was, existed := before[name]
		is, exists := after[name]
		switch {
		case !existed:
			changes[name] = "created"
		case !exists:
			changes[name] = "deleted"
		case was.uid != is.uid:
			changes[name] = "recreated"
		case was.version != is.version:
			changes[name] = "changed"
		}
	}
	return changes
}

// verbs of a preview, as changesBetween calls them.
var verbs = map[string]string{
	string(plan.Create): "created", string(plan.Update): "changed", string(plan.Adopt): "changed", string(plan.Repair): "created",
	string(plan.Settle): "changed", string(plan.Recreate): "recreated", preview.VerbDelete: "deleted", preview.VerbRelease: "changed",
}

// preview runs satchel plan, and returns what it says becomes of each object.
func (s situation) preview(t *testing.T) (changes map[string]string, text string) {
	t.Helper()
	got := clirig.Runner(cli.Run).Run(t, "/usr/local/bin/satchel", time.Now, "--kubeconfig", s.cp.KubeconfigPath(), "-n", s.namespace, "plan", "app", "-o", "json")
	var v preview.Preview
	if err := json.Unmarshal([]byte(got.Out), &v); err != nil {
		t.Fatal(err, got)
	}
	if v.Refused() {
		return map[string]string{"plan": refusal}, got.Out
	}
	changes = map[string]string{}
	for _, o := range v.Objects {
		changes[o.Kind+" "+o.Name] = verbs[strings.TrimSpace(o.Verb)]
	}
	return changes, got.Out
}
