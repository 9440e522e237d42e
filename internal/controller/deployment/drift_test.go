// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// damages are changes of applied objects by users.
var damages = map[string]func(r *rig, t *testing.T, o *unstructured.Unstructured){
	"deleted": func(r *rig, t *testing.T, o *unstructured.Unstructured) { t.Helper(); r.delete(t, o) },
	"edited": func(r *rig, t *testing.T, o *unstructured.Unstructured) {
		t.Helper()
		r.patch(t, o, `{"data":{"value":"x"}}`)
	},
	"unlabel": func(r *rig, t *testing.T, o *unstructured.Unstructured) {
		t.Helper()
		r.patch(t, o, `{"metadata":{"labels":null}}`)
	},
	"stripped": func(r *rig, t *testing.T, o *unstructured.Unstructured) {
		t.Helper()
		r.patch(t, o, `{"metadata":{"managedFields":[{}]}}`)
	},
}

// intact tells whether an object is as the bundle has it, and ours.
func (r *rig) intact(t *testing.T, o *unstructured.Unstructured) bool {
	t.Helper()
	if !r.get(t, o) {
		return false
	}
	value, _, _ := unstructured.NestedString(o.Object, "data", "value")
	return value == "one" && o.GetLabels()[v1alpha1.DeploymentLabel] == "app" &&
		slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == "satchel/"+o.GetNamespace()+"/app"
		})
}

func TestF26DriftOfTwentyObjects(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	files := fstest.MapFS{}
	for kind := range damages {
		for i := range 5 {
			name := fmt.Sprintf("%s-%d", kind, i)
			files[name+".yaml"] = configMap(name, "one")
		}
	}
	for i := range 5 {
		name := fmt.Sprintf("untouched-%d", i)
		files[name+".yaml"] = configMap(name, "one")
	}
	published := r.publish(t, namespace, "app", "v1", files)
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, published.Revision)
	untouched := map[string]string{}
	for i := range 5 {
		name := fmt.Sprintf("untouched-%d", i)
		untouched[name] = r.must(t, aConfigMap(namespace, name)).GetResourceVersion()
	}
	for kind, damage := range damages {
		for i := range 5 {
			damage(r, t, aConfigMap(namespace, fmt.Sprintf("%s-%d", kind, i)))
		}
	}
	damaged := time.Now()
	r.eventually(t, t.Context(), "all objects are as the bundle has them", func(context.Context) (bool, string) {
		for kind := range damages {
			for i := range 5 {
				if o := aConfigMap(namespace, fmt.Sprintf("%s-%d", kind, i)); !r.intact(t, o) {
					return false, fmt.Sprint(o.Object)
				}
			}
		}
		return true, ""
	})
	t.Logf("20 objects restored after %s at an interval of 1s", time.Since(damaged).Round(100*time.Millisecond))
	if took := time.Since(damaged); took > 12*time.Second {
		t.Errorf("took %s, want about an interval of 1 s", took)
	}
	for name, version := range untouched {
		if got := r.must(t, aConfigMap(namespace, name)).GetResourceVersion(); got != version {
			t.Errorf("%s was written", name)
		}
	}
	r.told(t, namespace, "DriftCorrected: restored objects that another client had changed: ")
}

func TestF25OnlyOwnFieldsAreReverted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": workload("web", "example.org/web:1")})
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, published.Revision)
	theirs := aConfigMap(namespace, "a")
	theirs.Object["data"] = map[string]any{"value": "theirs", "extra": "theirs"}
	if err := r.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(theirs), client.FieldOwner("other-tool"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	web := object("apps/v1", "Deployment", namespace, "web")
	r.patch(t, web, `{"spec":{"replicas":3},"metadata":{"annotations":{"example.org/note":"theirs"}}}`)
	r.holds(t, namespace, "a", "one")
	r.looks(t, namespace, "installer", 2) // a foreign write is answered once, by a comparison of the fields of the deployment
	asked := r.looks(t, namespace, "installer", 3)
	data, _, _ := unstructured.NestedStringMap(r.must(t, aConfigMap(namespace, "a")).Object, "data")
	if data["extra"] != "theirs" || data["value"] != "one" {
		t.Errorf("data is %v, want our value and their extra", data)
	}
	replicas, _, _ := unstructured.NestedInt64(r.must(t, web).Object, "spec", "replicas")
	if replicas != 3 || web.GetAnnotations()["example.org/note"] != "theirs" {
		t.Errorf("replicas %d, annotations %v: fields of others were reverted", replicas, web.GetAnnotations())
	}
	for _, e := range asked {
		if e.ImpersonatedUser != "" && isWrite(e) {
			t.Errorf("the conflict goes on: %s", e)
		}
	}
}

func TestF27ImmutableFieldKeepsTheOldRevision(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": workload("web", "example.org/web:1")})
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	web := r.must(t, object("apps/v1", "Deployment", namespace, "web"))
	uid := web.GetUID()

	changed := strings.ReplaceAll(string(workload("web", "example.org/web:2").Data), "app: web", "app: other")
	r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two"), "b.yaml": file(changed)})
	d := r.unready(t, key, v1alpha1.ReasonDryRunFailed)
	message := conditions.GetMessage(d, "Ready")
	for _, want := range []string{"Deployment.apps " + namespace + "/web", "immutable", "delete the object", "revision " + first.Revision + " stays applied"} {
		if !strings.Contains(message, want) {
			t.Errorf("%q is not in the message: %s", want, message)
		}
	}
	if got := r.value(t, t.Context(), namespace, "a"); got != "one" {
		t.Errorf("part of the new revision was applied: %q", got)
	}
	if r.must(t, web).GetUID() != uid || d.Status.Applied.Revision != first.Revision {
		t.Errorf("the old revision was not kept:\n%s", describe(d))
	}
	// The remedy that the message gives works.
	r.delete(t, web)
	third := r.publish(t, namespace, "app", "v3", fstest.MapFS{"a.yaml": configMap("a", "three"), "b.yaml": file(changed)})
	r.eventually(t, t.Context(), "the new revision is applied", func(ctx context.Context) (bool, string) {
		_ = client.IgnoreNotFound(r.admin.Delete(ctx, web)) // drift correction recreates the old one
		var d v1alpha1.BundleDeployment
		err := r.admin.Get(ctx, key, &d)
		return err == nil && d.Status.Applied.Revision == third.Revision, describe(&d)
	})
}
