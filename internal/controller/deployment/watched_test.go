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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// seldom makes a deployment compare everything once an hour: earlier actions are caused
// by watches.
func seldom(d *v1alpha1.BundleDeployment) {
	d.Spec.Interval = v1alpha1.Duration{Duration: time.Hour}
}

// asked lists the requests since a mark that impersonate a ServiceAccount of a
// namespace, or are for its deployment.
func (r *rig) asked(t *testing.T, namespace string, since controlplane.AuditMark) []controlplane.AuditEvent {
	t.Helper()
	return r.audit(t, since, func(e controlplane.AuditEvent) bool {
		ours := e.User == controllerUser && strings.Contains(e.RequestURI, namespace) || strings.Contains(e.ImpersonatedUser, ":"+namespace+":")
		return ours && e.Verb != "watch" && e.Resource != "events"
	})
}

// writes are the requests that changed objects of the tenant.
func (r *rig) writes(t *testing.T, namespace string, since controlplane.AuditMark) []controlplane.AuditEvent {
	t.Helper()
	var list []controlplane.AuditEvent
	for _, e := range r.asked(t, namespace, since) {
		if e.ImpersonatedUser != "" && isWrite(e) && e.Code < 300 {
			list = append(list, e)
		}
	}
	return list
}

// Each changed object is restored long before the interval is over, by one write;
// nothing else is written.
func TestF26WatchedDriftOfHundredObjects(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	files := fstest.MapFS{}
	for kind := range damages {
		for i := range 25 {
			name := fmt.Sprintf("%s-%d", kind, i)
			files[name+".yaml"] = configMap(name, "one")
		}
	}
	for i := range 25 {
		name := fmt.Sprintf("untouched-%d", i)
		files[name+".yaml"] = configMap(name, "one")
	}
	published := r.publish(t, namespace, "app", "v1", files)
	key := r.deploy(t, namespace, "app", seldom)
	r.ready(t, key, published.Revision)
	began := r.mark(t)
	for kind, damage := range damages {
		for i := range 25 {
			damage(r, t, aConfigMap(namespace, fmt.Sprintf("%s-%d", kind, i)))
		}
	}
	damaged := time.Now()
	r.eventually(t, t.Context(), "all objects are as the bundle has them", func(context.Context) (bool, string) {
		for kind := range damages {
			for i := range 25 {
				if o := aConfigMap(namespace, fmt.Sprintf("%s-%d", kind, i)); !r.intact(t, o) {
					return false, fmt.Sprint(o.Object)
				}
			}
		}
		return true, ""
	})
	took := time.Since(damaged).Round(10 * time.Millisecond)
	t.Logf("100 objects restored %s after the last change", took)
	if took > patience/2 { // many tests share the machine; what it takes alone is in docs/adr/0009
		t.Errorf("took %s, want about 1 s", took)
	}
	written := map[string]int{}
	for _, e := range r.writes(t, namespace, began) {
		written[e.Name]++
	}
	for name, times := range written {
		if times != 1 || strings.HasPrefix(name, "untouched") {
			t.Errorf("%s was written %d times", name, times)
		}
	}
	if len(written) != 100 {
		t.Errorf("%d objects were written, want 100", len(written))
	}
}

// One edit is repaired by one write, soon, and costs little else; when nothing
// happens, nothing is asked.
func TestF26OneRepairOneWrite(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": workload("web", "example.org/web:1")})
	key := r.deploy(t, namespace, "app", seldom)
	r.ready(t, key, published.Revision)
	r.quiet(t, namespace)
	for i := range 3 {
		began := r.mark(t)
		at := time.Now()
		r.patch(t, aConfigMap(namespace, "a"), fmt.Sprintf(`{"data":{"value":"x%d"}}`, i))
		r.holds(t, namespace, "a", "one")
		took := time.Since(at).Round(time.Millisecond)
		t.Logf("repaired after %s", took)
		if took > 6*time.Second {
			t.Errorf("took %s, want at most 1 s", took)
		}
		r.quiet(t, namespace)
		if got := r.writes(t, namespace, began); len(got) != 1 {
			t.Errorf("%d writes, want 1: %v", len(got), got)
		}
		for _, e := range r.asked(t, namespace, began) {
			t.Logf("asked: %s %d", e, e.Code)
		}
	}
	r.told(t, namespace, "DriftCorrected: restored objects that another client had changed: ConfigMap "+namespace+"/a")
}

// quiet waits until nothing has been asked for four seconds.
func (r *rig) quiet(t *testing.T, namespace string) {
	t.Helper()
	r.eventually(t, t.Context(), "nothing is asked for four seconds", func(context.Context) (bool, string) {
		began := r.mark(t)
		time.Sleep(4 * time.Second) // to see that nothing happens takes time
		asked := r.asked(t, namespace, began)
		return len(asked) == 0, fmt.Sprint(asked)
	})
}

// A workload that fails long after it was healthy is reported within seconds, with the
// cause, and recovers.
func TestHealthIsWatchedAfterSuccess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"b.yaml": workload("web", "example.org/web:1")})
	key := r.deploy(t, namespace, "app", seldom)
	r.ready(t, key, published.Revision)
	r.quiet(t, namespace)
	at := time.Now()
	r.killPods(t, namespace)
	d := r.unready(t, key, v1alpha1.ReasonHealthFailed)
	t.Logf("told %s after its Pods died", time.Since(at).Round(10*time.Millisecond))
	if message := conditions.GetMessage(d, "Ready"); !strings.Contains(message, "Deployment.apps "+namespace+"/web") {
		t.Errorf("the message does not name the workload: %s", message)
	}
	r.revivePods(t, namespace)
	r.ready(t, key, published.Revision)
}

// killPods makes a namespace refuse Pods, and deletes the existing ones.
func (r *rig) killPods(t *testing.T, namespace string) {
	t.Helper()
	quota := object("v1", "ResourceQuota", namespace, "none")
	quota.Object["spec"] = map[string]any{"hard": map[string]any{"pods": "0"}}
	r.create(t, quota)
	r.eventually(t, t.Context(), "the quota is enforced", func(context.Context) (bool, string) {
		_, found, _ := unstructured.NestedMap(r.must(t, quota).Object, "status", "hard")
		return found, ""
	})
	pods := &unstructured.UnstructuredList{}
	pods.SetAPIVersion("v1")
	pods.SetKind("PodList")
	if err := r.admin.List(t.Context(), pods); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if pods.Items[i].GetNamespace() == namespace {
			r.delete(t, &pods.Items[i])
		}
	}
}

func (r *rig) revivePods(t *testing.T, namespace string) {
	t.Helper()
	r.delete(t, object("v1", "ResourceQuota", namespace, "none"))
}
