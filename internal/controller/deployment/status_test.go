// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/installation"
)

// record watches a deployment; the function gives all its versions so far.
func (r *rig) record(t *testing.T, key client.ObjectKey) func() []*v1alpha1.BundleDeployment {
	t.Helper()
	dyn, err := dynamic.NewForConfig(r.cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	watch, err := dyn.Resource(v1alpha1.GroupVersion.WithResource("bundledeployments")).Namespace(key.Namespace).
		Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + key.Name})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var seen []*v1alpha1.BundleDeployment
	go func() {
		for event := range watch.ResultChan() {
			d := &v1alpha1.BundleDeployment{}
			o, ok := event.Object.(*unstructured.Unstructured) // else the watch ends
			if ok && runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d) == nil {
				mu.Lock()
				seen = append(seen, d)
				mu.Unlock()
			}
		}
	}()
	return func() []*v1alpha1.BundleDeployment {
		time.Sleep(500 * time.Millisecond) // the last events arrive
		watch.Stop()
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// contradictions lists what is wrong with one version of a status, by kstatus.
func contradictions(d *v1alpha1.BundleDeployment) []string {
	var found []string
	check := func(wrong bool, words string) {
		if wrong {
			found = append(found, words)
		}
	}
	ready := conditions.IsTrue(d, meta.ReadyCondition)
	current := d.Status.ObservedGeneration == d.Generation
	check(conditions.IsTrue(d, meta.ReconcilingCondition) && conditions.IsTrue(d, meta.StalledCondition), "Reconciling and Stalled")
	check(d.Status.ObservedGeneration > d.Generation, "observedGeneration from the future")
	check(ready && current && d.Status.Applied.Revision == "", "Ready without a revision")
	check(ready && conditions.IsTrue(d, meta.StalledCondition), "Ready and Stalled")
	for _, c := range d.Status.Conditions {
		check(c.ObservedGeneration > d.Generation, c.Type+" from the future")
		check(c.Message == "" || c.Reason == "", c.Type+" without words")
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		return append(found, err.Error())
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil {
		return append(found, err.Error())
	}
	check(result.Status == status.CurrentStatus && (!ready || !current), "kstatus says Current")
	check(result.Status == status.FailedStatus && !conditions.IsTrue(d, meta.StalledCondition), "kstatus says Failed")
	return found
}

func TestConditionsFollowKstatusAtEveryStep(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	key := r.deploy(t, namespace, "app", quick) // before its source exists
	seen := r.record(t, key)
	r.unready(t, key, v1alpha1.ReasonSourceNotFound)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": workload("web", "example.org/web:1")})
	r.ready(t, key, first.Revision)
	r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": file("kind: [broken")})
	d := r.unready(t, key, v1alpha1.ReasonConversionFailed)
	if !conditions.IsTrue(d, meta.StalledCondition) || conditions.Has(d, meta.ReconcilingCondition) {
		t.Errorf("content that never converts does not stall:\n%s", describe(d))
	}
	third := r.publish(t, namespace, "app", "v3", fstest.MapFS{"b.yaml": workload("web", "example.org/web:3")})
	d = r.ready(t, key, third.Revision)
	if conditions.Has(d, meta.StalledCondition) || conditions.Has(d, meta.ReconcilingCondition) {
		t.Errorf("Ready, and yet:\n%s", describe(d))
	}
	for _, kind := range []string{"SourceReady", "Converted", "Planned", "Applied", "Healthy"} {
		if !conditions.IsTrue(d, kind) {
			t.Errorf("%s is not True:\n%s", kind, describe(d))
		}
	}
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Health.Timeout = v1alpha1.Duration{Duration: time.Minute} })
	r.ready(t, key, third.Revision)
	r.remove(t, key)
	versions := seen()
	if len(versions) < 12 {
		t.Errorf("only %d versions were seen", len(versions))
	}
	for i, d := range versions {
		if wrong := contradictions(d); len(wrong) > 0 {
			t.Errorf("version %d: %s:\n%s", i, strings.Join(wrong, ", "), describe(d))
		}
	}
}

func TestI3NothingIsWrittenAtRest(t *testing.T) {
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{
		"a.yaml": configMap("a", "one"), "b.yaml": workload("web", "example.org/web:1"), "c.yaml": crd(group), "d.yaml": gadget(group, "g"),
		"e.yaml": file("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}"),
		"f.yaml": file("apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {app: web}, ports: [{port: 80}]}"),
		"g.yaml": file("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]"),
	})
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, published.Revision)
	// A failing one writes once, too.
	r.publish(t, namespace, "bad", "v1", fstest.MapFS{"a.yaml": configMap("a", "of another")})
	if err := installation.Admin(t.Context(), r.admin, namespace, "another"); err != nil {
		t.Fatal(err)
	}
	bad := r.deploy(t, namespace, "bad", both(quick, func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "another" }))
	r.unready(t, bad, v1alpha1.ReasonPlanRefused)
	for _, account := range []string{"installer", "another"} {
		r.looks(t, namespace, account, 2) // what is left to do
	}
	for _, account := range []string{"installer", "another"} {
		for _, e := range r.looks(t, namespace, account, 3) {
			if isWrite(e) {
				t.Errorf("written at rest: %s", e)
			}
		}
	}
}

func TestEventsOncePerChange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")})
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	r.ready(t, key, second.Revision)
	r.publish(t, namespace, "app", "v3", fstest.MapFS{"a.yaml": file("kind: [broken")})
	r.unready(t, key, v1alpha1.ReasonConversionFailed)
	r.told(t, namespace, "ConversionFailed: ")
	r.looks(t, namespace, "installer", 3)
	want := []string{
		"Installed: installed revision " + first.Revision + ": 2 objects created, 0 updated; Ready: 2 objects, all healthy",
		"Upgraded: upgraded from revision " + first.Revision + " to revision " + second.Revision + ": 0 objects created, 1 updated; Ready: 1 object, all healthy",
		"Pruned: deleted 1 object that left the bundle: ConfigMap " + namespace + "/b",
		"ConversionFailed: ",
	}
	got := r.events(t, namespace, "app")
	for _, text := range want {
		if n := len(slices.DeleteFunc(slices.Clone(got), func(e string) bool { return !strings.HasPrefix(e, text) })); n != 1 {
			t.Errorf("%d events %q, want one", n, text)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d events, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
}

func TestWarningsAreBoundedAndStay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	r.refuse(t, namespace, policy{operation: admissionv1.Create, resource: "configmaps", rule: "false", message: "'beware of ' + object.metadata.name", warn: true}, nil)
	time.Sleep(5 * time.Second) // a warning cannot be waited for by its refusal
	files := fstest.MapFS{}
	for i := range 30 {
		name := fmt.Sprintf("a%02d", i)
		files[name+".yaml"] = configMap(name, "one")
	}
	published := r.publish(t, namespace, "app", "v1", files)
	key := r.deploy(t, namespace, "app", quick)
	d := r.ready(t, key, published.Revision)
	if n := len(d.Status.Warnings); n != 20 || !strings.Contains(d.Status.Warnings[0], "beware of a00") || d.Status.Warnings[19] != "and 11 more" {
		t.Errorf("%d warnings, want 20: %q", n, d.Status.Warnings)
	}
	r.looks(t, namespace, "installer", 3)
	if again := r.ready(t, key, published.Revision); !slices.Equal(again.Status.Warnings, d.Status.Warnings) {
		t.Errorf("the warnings became %q while the objects stayed", again.Status.Warnings)
	}
}

// loseStatus empties the status, as a restore from a backup does.
func (r *rig) loseStatus(t *testing.T, key client.ObjectKey) {
	t.Helper()
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := r.admin.Status().Patch(t.Context(), d, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/status","value":{}}]`))); err != nil {
		t.Fatal(err)
	}
}

func TestLostStatusOrphansNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")})
	key := r.deploy(t, namespace, "app", nil) // the interval is ten minutes
	r.ready(t, key, first.Revision)
	uid := r.must(t, aConfigMap(namespace, "a")).GetUID()
	r.loseStatus(t, key)
	d := r.ready(t, key, first.Revision)
	if d.Status.Inventory.Count != 2 || r.must(t, aConfigMap(namespace, "a")).GetUID() != uid {
		t.Errorf("%d objects in the inventory, want the same 2 as before", d.Status.Inventory.Count)
	}
	// Lost while suspended; objects that left the bundle meanwhile are still pruned.
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true })
	r.until(t, key, "suspended", func(*v1alpha1.BundleDeployment) bool { return true })
	r.loseStatus(t, key)
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = false })
	r.ready(t, key, second.Revision)
	r.gone(t, aConfigMap(namespace, "b"))
	// Lost, and deleted before it could be written again.
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Suspend = true })
	r.until(t, key, "suspended", func(*v1alpha1.BundleDeployment) bool { return true })
	r.loseStatus(t, key)
	r.remove(t, key)
	r.gone(t, aConfigMap(namespace, "a"))
}

func TestAnotherClusterStalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")})
	key := r.deploy(t, namespace, "app", quick)
	d := r.ready(t, key, first.Revision)
	target := d.Status.Inventory.Target
	move := func(to string) {
		patch := `{"status":{"inventory":{"target":"` + to + `"}}}`
		if err := r.admin.Status().Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	move("another")
	r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	d = r.unready(t, key, v1alpha1.ReasonTargetChanged)
	if !conditions.IsTrue(d, meta.StalledCondition) || !strings.Contains(conditions.GetMessage(d, "Ready"), "create another BundleDeployment") {
		t.Errorf("not stalled with a way out:\n%s", describe(d))
	}
	r.startRemoval(t, key)
	r.until(t, key, "the removal says how to get out", func(d *v1alpha1.BundleDeployment) bool {
		return strings.Contains(conditions.GetMessage(d, "Ready"), "annotate this one with satchel.dev/abandon=now")
	})
	if r.value(t, t.Context(), namespace, "a") != "one" || r.value(t, t.Context(), namespace, "b") != "one" {
		t.Error("something was applied or pruned in the wrong cluster")
	}
	move(target)
	r.eventually(t, t.Context(), "the deployment is gone", func(ctx context.Context) (bool, string) {
		return apierrors.IsNotFound(r.admin.Get(ctx, key, d)), describe(d)
	})
	r.gone(t, aConfigMap(namespace, "b"))
}
