// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// counted counts the jobs of worker processes.
type counted struct {
	jobs.Runner
	jobs atomic.Int64
}

func (c *counted) Run(ctx context.Context, request worker.Request) ([]byte, error) {
	c.jobs.Add(1)
	return c.Runner.Run(ctx, request)
}

// steadyDriver is a driver without watches of a Ready deployment that it has compared once. converts runs it once and
// returns how many jobs of worker processes that took.
func steadyDriver(t *testing.T, files fstest.MapFS, change func(*v1alpha1.BundleDeployment)) (d *driver, converts func() int64) {
	t.Helper()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", files)
	key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
		rarely(d)
		if change != nil {
			change(d)
		}
	})
	r.ready(t, key, published.Revision)
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { metav1.SetMetaDataLabel(&d.ObjectMeta, driven, "true") })
	t.Cleanup(func() { r.undrive(t, key) })
	workers := &counted{Runner: shared.running.Workers}
	d = r.drive(t, key, nil)
	d.workers = workers
	d = d.again(t, nil)
	converts = func() int64 {
		before := workers.jobs.Load()
		d.reconcile(t)
		return workers.jobs.Load() - before
	}
	if converts() == 0 {
		t.Fatal("the first reconcile of a process compares without converting")
	}
	return d, converts
}

// interval moves the clock of a driver until everything is to be compared again.
func (d *driver) interval() { d.now = d.now.Add(8760 * time.Hour) }

// While nothing but the time has changed, or a reconcile is requested, the objects are compared by their metadata, and the
// bundle is not converted again. It is not parallel: a chart is converted again when another test adds a CRD.
func TestUnchangedIsNotConverted(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"manifests": {"a.yaml": configMap("one", "1"), "b.yaml": configMap("two", "2"), "c.yaml": configMap("three", "3")},
		"a chart":   chart(nil),
	} {
		t.Run(name, func(t *testing.T) {
			d, converts := steadyDriver(t, files, nil)
			d.interval()
			if n := converts(); n != 0 {
				t.Errorf("after the interval it took %d jobs", n)
			}
			d.r.edit(t, d.key, func(d *v1alpha1.BundleDeployment) {
				metav1.SetMetaDataAnnotation(&d.ObjectMeta, meta.ReconcileRequestAnnotation, "please")
			})
			if n := converts(); n != 0 {
				t.Errorf("the request took %d jobs", n)
			}
			if found := d.deployment(t); found.Status.LastHandledReconcileAt != "please" || !isReady(found) {
				t.Errorf("the request was not handled:\n%s", describe(found))
			}
			d.r.edit(t, d.key, func(d *v1alpha1.BundleDeployment) {
				d.Spec.Processors = []v1alpha1.Processor{{Metadata: &v1alpha1.MetadataProcessor{Annotations: map[string]string{"edited": "yes"}}}}
			})
			if n := converts(); n == 0 {
				t.Error("an edited spec was not converted")
			}
		})
	}
}

// What changed on the cluster is found by the comparison of metadata, and put back.
func TestComparisonFindsChanges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *rig, *unstructured.Unstructured){
		"edited": func(t *testing.T, r *rig, o *unstructured.Unstructured) {
			t.Helper()
			r.patch(t, o, `{"data":{"value":"edited"}}`)
		},
		"deleted": func(t *testing.T, r *rig, o *unstructured.Unstructured) { t.Helper(); r.delete(t, o); r.gone(t, o) },
		"replaced": func(t *testing.T, r *rig, o *unstructured.Unstructured) {
			t.Helper()
			labels := r.must(t, o).GetLabels()
			r.delete(t, o)
			r.gone(t, o)
			other := aConfigMap(o.GetNamespace(), o.GetName())
			other.SetLabels(labels)
			r.create(t, other)
		},
		"without its field manager": func(t *testing.T, r *rig, o *unstructured.Unstructured) {
			t.Helper()
			r.patch(t, o, `{"metadata":{"managedFields":[{}]},"data":{"value":"taken"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, converts := steadyDriver(t, fstest.MapFS{"a.yaml": configMap("one", "1"), "b.yaml": configMap("two", "2")}, nil)
			one := aConfigMap(d.key.Namespace, "one")
			change(t, d.r, one)
			d.interval()
			if n := converts(); n == 0 {
				t.Error("the change was not found")
			}
			d.r.holds(t, d.key.Namespace, "one", "1")
		})
	}
}

// What depends on more than the objects is planned each time: bundles with hooks, with requirements, and with kinds that are
// not served.
func TestNotSteadyIsConverted(t *testing.T) {
	t.Parallel()
	hook := file(`apiVersion: v1
kind: ConfigMap
metadata: {name: hook, annotations: {helm.sh/hook: post-install}}
`)
	optional := file("apiVersion: example.org/v1\nkind: Nowhere\nmetadata: {name: nothing}\n")
	for name, tc := range map[string]struct {
		files  fstest.MapFS
		change func(*v1alpha1.BundleDeployment)
	}{
		"hooks": {files: chart(fstest.MapFS{"templates/hook.yaml": hook})},
		"optional kinds": {files: fstest.MapFS{"a.yaml": configMap("one", "1"), "b.yaml": optional}, change: func(d *v1alpha1.BundleDeployment) {
			d.Spec.Apply.OptionalKinds = []v1alpha1.OptionalKind{{Group: "example.org", Kind: "Nowhere"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d, converts := steadyDriver(t, tc.files, tc.change)
			d.interval()
			if converts() == 0 {
				t.Error("it was not converted again")
			}
		})
	}
}

// A chart is converted again if the capabilities of the cluster have changed.
func TestOtherCapabilitiesAreConverted(t *testing.T) {
	t.Parallel()
	d, converts := steadyDriver(t, chart(nil), nil)
	group := d.r.group(t, d.key.Namespace)
	d.r.create(t, definition(t, group))
	d.r.eventually(t, t.Context(), "the kind is served", func(ctx context.Context) (bool, string) {
		d.Tenants.Kinds().Forget()
		_, err := d.Tenants.Kinds().Preferred(ctx, schema.GroupKind{Group: group, Kind: "Gadget"})
		return err == nil, fmt.Sprint(err)
	})
	d.interval()
	if converts() == 0 {
		t.Error("it was not converted again")
	}
}

// definition is the object of a CRD.
func definition(t *testing.T, group string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(crd(group).Data, &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}
