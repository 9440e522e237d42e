// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// gated has jobs wait while it is locked.
type gated struct {
	jobs.Runner
	sync.RWMutex
}

func (g *gated) Run(ctx context.Context, request worker.Request) ([]byte, error) {
	g.RLock()
	defer g.RUnlock()
	return g.Runner.Run(ctx, request)
}

// While a new revision is converted, which can take long, the applied one is corrected as soon as a watch reports drift. As long
// as none does, it is not compared.
func TestWhileConvertingOnlyReportedDriftIsCorrected(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	key := r.drivenMaps(t, namespace)
	d := r.drive(t, key, nil)
	workers := &gated{Runner: shared.running.Workers}
	d.workers = workers
	d.watches = drift.Options{Limit: 8}
	d = d.again(t, nil)
	first, _ := d.ready(t)
	d.watched(t, 1, "")

	second := r.publish(t, namespace, "app", "v2", threeMaps("two"))
	d.DoNotWaitForConversions()
	workers.Lock()
	opened := sync.OnceFunc(workers.Unlock)
	t.Cleanup(opened)
	reconcile := func(ctx context.Context) (pause time.Duration) {
		t.Helper()
		result, err := d.Reconcile(ctx, ctrl.Request{NamespacedName: key})
		if err != nil {
			t.Fatal(err)
		}
		if !d.Converting() {
			t.Fatal("the bundle is not converted any more")
		}
		return result.RequeueAfter
	}
	for range 3 {
		mark := r.mark(t)
		reconcile(t.Context())
		for _, e := range r.asked(t, namespace, mark) {
			if e.ImpersonatedUser != "" && e.Resource == "configmaps" {
				t.Errorf("%s %s was asked although no watch has reported anything", e.Verb, e.RequestURI)
			}
		}
	}
	if text := conditions.GetMessage(d.deployment(t), "Ready"); !strings.Contains(text, "revision "+first.Status.Applied.Revision+" stays applied and is kept from drifting") {
		t.Errorf("the status says %q", text)
	}
	interval := first.Spec.Interval.Duration
	d.now = d.now.Add(interval / 10 * 9)
	if pause := reconcile(t.Context()); pause <= 0 || pause > interval/5 {
		t.Errorf("the next reconcile is due in %s, but the comparison a tenth of %s from now", pause, interval)
	}
	r.patch(t, aConfigMap(namespace, "m0"), `{"data":{"value":"edited"}}`)
	r.eventually(t, t.Context(), "the edited object is put back", func(ctx context.Context) (bool, string) {
		reconcile(ctx)
		got := r.value(t, ctx, namespace, "m0")
		return got == "one", got
	})
	opened()
	d.WaitForConversions()
	r.eventually(t, t.Context(), "the new revision is applied", func(context.Context) (bool, string) {
		d.reconcile(t)
		found := d.deployment(t)
		return found.Status.Applied.Revision == second.Revision && isReady(found), describe(found)
	})
	r.holds(t, namespace, "m0", "two")
}

// While a revision is converted, what the attempt before it has deleted is not applied again, although the applied revision has it. The
// warnings of a former revision go with the plan of the next one.
func TestWhileConvertingDeletedObjectsStayDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	files := threeMaps("one")
	files["first.yaml"] = file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first, finalizers: [example.org/hold], annotations: {satchel.dev/prune-timing: BeforeApply}}")
	files["link.yaml"] = configMap("linked", "one")
	r.publish(t, namespace, "app", "v1", without(files, "link.yaml"))
	key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
		rarely(d)
		d.Labels = map[string]string{driven: ""}
	})
	t.Cleanup(func() { r.undrive(t, key) })
	d := r.drive(t, key, nil)
	workers := &gated{Runner: shared.running.Workers}
	d.workers = workers
	d = d.again(t, nil)
	warned, _ := d.ready(t)
	if len(warned.Status.Warnings) == 0 {
		t.Fatal("the link is not warned of")
	}
	delete(files, "first.yaml")
	for at, value := range []string{"two", "three"} {
		for name, file := range threeMaps(value) {
			files[name] = file
		}
		published := r.publish(t, namespace, "app", "v"+value, files)
		if at == 0 { // it is deleted, and waits for its finalizer
			d.reconcile(t)
			d.reconcile(t)
			r.patch(t, r.must(t, aConfigMap(namespace, "first")), `{"metadata":{"finalizers":null}}`)
			r.gone(t, aConfigMap(namespace, "first"))
		}
		d = d.again(t, nil) // the next process: what is known is in the status
		d.DoNotWaitForConversions()
		workers.Lock()
		for range 2 {
			if _, err := d.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
		}
		if !d.Converting() {
			t.Error("the bundle is not converted any more")
		}
		r.gone(t, aConfigMap(namespace, "first"))
		r.holds(t, namespace, "m0", "one")
		workers.Unlock()
		d.WaitForConversions()
		if at == 1 {
			found, _ := d.ready(t)
			if found.Status.Applied.Revision != published.Revision || len(found.Status.Warnings) > 0 {
				t.Errorf("warnings %q:\n%s", found.Status.Warnings, describe(found))
			}
		}
	}
}

// A reconcile that fails before the applied revision can be compared does not say that it is kept from drifting.
func TestWhatIsNotComparedIsNotSaidToBeKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	key := r.drivenMaps(t, namespace)
	d := r.drive(t, key, nil)
	d.watches = drift.Options{Limit: 8}
	d = d.again(t, nil)
	first, _ := d.ready(t)
	d.watched(t, 1, "")
	account := first.Spec.ServiceAccountName
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = "missing" })
	r.eventually(t, t.Context(), "the status says that the ServiceAccount is missing", func(context.Context) (bool, string) {
		d.reconcile(t)
		text := conditions.GetMessage(d.deployment(t), "Ready")
		return strings.Contains(text, "/missing"), text
	})
	text := conditions.GetMessage(d.deployment(t), "Ready")
	if !strings.HasSuffix(text, "\nrevision "+first.Status.Applied.Revision+" stays applied") {
		t.Errorf("the status says %q", text)
	}
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.ServiceAccountName = account }) // which can remove the objects
}
