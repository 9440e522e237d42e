// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// countStatusWrites counts the writes of BundleDeployments' statuses.
func countStatusWrites(count *atomic.Int32) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/bundledeployments/") && strings.HasSuffix(request.URL.Path, "/status") {
				count.Add(1)
			}
			return next.RoundTrip(request)
		})
	}
}

// drivenInstall creates a deployment that only a driver reconciles, which has created its objects.
func (r *rig) drivenInstall(t *testing.T, files fstest.MapFS, count *atomic.Int32) *driver {
	t.Helper()
	namespace := r.namespace(t)
	r.publish(t, namespace, "app", "v1", files)
	key := r.deploy(t, namespace, "app", both(rarely, left))
	t.Cleanup(func() { // the running controller removes it
		patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/labels"}]`))
		_ = r.admin.Patch(context.WithoutCancel(t.Context()), &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}, patch)
	})
	d := r.drive(t, key, countStatusWrites(count))
	d.reconcile(t)
	return d
}

// The status after an apply is stored together with Ready, by one write and one event, if the objects are healthy soon.
func TestStatusIsHeldUntilHealthy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	healthy := fstest.MapFS{"b.yaml": workload("web", "example.org/web:1")}
	var writes atomic.Int32
	d := r.drivenInstall(t, healthy, &writes)
	if found := d.deployment(t); !isReady(found) && found.Status.Applied.Revision != "" || found.Status.Inventory == nil || found.Status.Inventory.Count != 1 {
		t.Errorf("before it is healthy the plan is stored, and nothing else:\n%s", describe(found))
	}
	web := object("apps/v1", "Deployment", d.key.Namespace, "web")
	r.eventually(t, t.Context(), "its Pods run", func(ctx context.Context) (bool, string) {
		err := r.admin.Get(ctx, client.ObjectKeyFromObject(web), web)
		available, _, _ := unstructured.NestedInt64(web.Object, "status", "availableReplicas")
		return err == nil && available == 1, fmt.Sprint(web.Object["status"], err)
	})
	found, _ := d.ready(t)
	if got := writes.Load(); got != 2 {
		t.Errorf("the status was written %d times, want 2: before the first write, and when Ready", got)
	}
	if found.Status.Applied.Revision == "" || found.Status.ObservedGeneration != found.Generation || len(found.Status.History) != 1 {
		t.Errorf("the status is not complete:\n%s", describe(found))
	}
	told := strings.Join(d.told.notes, "\n")
	if strings.Count(told, "Normal Installed: ") != 1 || !strings.Contains(told, "1 object created, 0 updated; Ready: 1 object, all healthy") || strings.Contains(told, "Normal Ready: ") {
		t.Errorf("the events are not one about the installation that is Ready:\n%s", told)
	}
}

// Objects that are not healthy soon: the status is stored within a second, and says so.
func TestStatusIsNotHeldForLong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var writes atomic.Int32
	d := r.drivenInstall(t, fstest.MapFS{"b.yaml": sickWorkload("annotations: {"+controlplane.PodAnnotation+": "+controlplane.PodPending+"}", "")}, &writes)
	began := d.now
	for d.deployment(t).Status.Applied.Revision == "" {
		if d.heard("Installed") {
			t.Error("the event is emitted before its status is stored")
		}
		if d.now.Sub(began) > time.Second {
			t.Fatalf("not stored after %s:\n%s", d.now.Sub(began), describe(d.deployment(t)))
		}
		d.now = d.now.Add(d.reconcile(t).RequeueAfter)
	}
	if !d.heard("Normal Installed: ") || d.heard("; Ready: ") {
		t.Errorf("events: %q", d.told.notes)
	}
}

// What happens to a deployment while its status is held loses nothing.
func TestHeldStatusIsNotLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cases := map[string]func(*testing.T, *driver) *driver{
		"edited": func(t *testing.T, d *driver) *driver {
			t.Helper()
			r.edit(t, d.key, func(found *v1alpha1.BundleDeployment) {
				found.Spec.Processors = []v1alpha1.Processor{{Metadata: &v1alpha1.MetadataProcessor{Labels: map[string]string{"edited": "yes"}}}}
			})
			return d
		},
		"status replaced": func(t *testing.T, d *driver) *driver {
			t.Helper()
			patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"warnings":["of another client"]}}`))
			if err := r.admin.Status().Patch(t.Context(), d.deployment(t), patch); err != nil {
				t.Fatal(err)
			}
			return d
		},
		"killed": func(t *testing.T, d *driver) *driver {
			t.Helper()
			return d.again(t, nil)
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var writes atomic.Int32
			d := r.drivenInstall(t, fstest.MapFS{"b.yaml": workload("web", "example.org/web:1")}, &writes)
			d = change(t, d)
			found, _ := d.ready(t)
			for found.Status.ObservedGeneration != found.Generation { // edits have their pace
				d.now = d.now.Add(time.Second)
				found, _ = d.ready(t)
			}
			if found.Status.Applied.Revision == "" || found.Status.Inventory.Count != 1 || len(found.Status.Warnings) > 0 {
				t.Errorf("the status is not complete:\n%s", describe(found))
			}
			if !d.heard("Installed") {
				t.Errorf("no event about the installation: %q", d.told.notes)
			}
		})
	}
}
