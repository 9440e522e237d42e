// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// on makes a deployment depend on others, with a long interval.
func on(names ...string) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) {
		d.Spec.RetryInterval = v1alpha1.Duration{Duration: time.Hour}
		d.Spec.Interval = v1alpha1.Duration{Duration: time.Hour}
		d.Spec.DependsOn = nil
		for _, name := range names {
			d.Spec.DependsOn = append(d.Spec.DependsOn, v1alpha1.Dependency{Name: name})
		}
	}
}

func says(words ...string) func(*v1alpha1.BundleDeployment) bool {
	return func(d *v1alpha1.BundleDeployment) bool {
		for _, word := range words {
			if !strings.Contains(conditions.GetReason(d, meta.ReadyCondition)+" "+conditions.GetMessage(d, meta.ReadyCondition), word) {
				return false
			}
		}
		return true
	}
}

func broken() fstest.MapFS {
	return fstest.MapFS{"b.yaml": file("kind: ConfigMap\nmetadata: {name: x}\n")}
}

// TestDependsOnIsWokenByEvents installs three deployments; each depends on the next one, and the last one
// is ready first.
func TestDependsOnIsWokenByEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	top := r.publish(t, namespace, "top", "v1", fstest.MapFS{"b.yaml": configMap("top", "1")})
	web := r.publish(t, namespace, "web", "v1", fstest.MapFS{"b.yaml": configMap("web", "1")})
	topKey := r.deploy(t, namespace, "top", on("web"))
	r.until(t, topKey, "web is missing", says(v1alpha1.ReasonDependencyNotReady, "bundledeployment "+namespace+"/web does not exist"))
	webKey := r.deploy(t, namespace, "web", on("db"))
	d := r.until(t, topKey, "web is not ready", says("web is not ready: "+v1alpha1.ReasonDependencyNotReady))
	if !conditions.IsUnknown(d, meta.ReadyCondition) || !conditions.IsTrue(d, meta.ReconcilingCondition) || d.Status.Inventory.Count > 0 {
		t.Errorf("waiting is no failure, and nothing is installed:\n%s", describe(d))
	}
	r.publish(t, namespace, "db", "v1", broken())
	dbKey := r.deploy(t, namespace, "db", on())
	r.until(t, webKey, "db is broken", says("db is not ready: "+v1alpha1.ReasonConversionFailed))
	began := time.Now()
	db := r.publish(t, namespace, "db", "v2", fstest.MapFS{"b.yaml": configMap("db", "1")})
	r.ready(t, dbKey, db.Revision)
	r.ready(t, webKey, web.Revision)
	r.ready(t, topKey, top.Revision)
	took := time.Since(began)
	t.Logf("the chain of three took %s", took.Round(time.Millisecond))
	if took > 30*time.Second {
		t.Errorf("took %s, want at most 5 s", took)
	}
	r.remove(t, dbKey) // dependents do not block the deletion
	r.edit(t, webKey, func(d *v1alpha1.BundleDeployment) { d.Spec.Health.Timeout = v1alpha1.Duration{Duration: time.Minute} })
	d = r.until(t, webKey, "what is new waits", says("db does not exist"))
	if d.Status.Applied.Revision != web.Revision {
		t.Errorf("what was applied is forgotten:\n%s", describe(d))
	}
}

// TestDependencyThatFailsLater: the applied revision is reconciled, and only a new one waits.
func TestDependencyThatFailsLater(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	db := r.publish(t, namespace, "db", "v1", fstest.MapFS{"b.yaml": configMap("db", "1")})
	dbKey := r.deploy(t, namespace, "db", quick)
	first := r.publish(t, namespace, "web", "v1", fstest.MapFS{"b.yaml": configMap("web", "1")})
	webKey := r.deploy(t, namespace, "web", both(on("db"), quick))
	r.ready(t, dbKey, db.Revision)
	r.ready(t, webKey, first.Revision)
	r.publish(t, namespace, "db", "v2", broken())
	r.unready(t, dbKey, v1alpha1.ReasonConversionFailed)
	web := r.must(t, object("v1", "ConfigMap", namespace, "web"))
	r.patch(t, web, `{"data":{"value":"x"}}`)
	r.untilValue(t, namespace, "web", "1")
	if d := r.ready(t, webKey, first.Revision); !conditions.IsTrue(d, meta.ReadyCondition) {
		t.Error("it went down with its dependency")
	}

	second := r.publish(t, namespace, "web", "v2", fstest.MapFS{"b.yaml": configMap("web", "2")})
	r.until(t, webKey, "the second revision waits, and the first is reconciled",
		says(v1alpha1.ReasonDependencyNotReady, "revision "+first.Revision+" stays applied and is kept from drifting"))
	r.patch(t, web, `{"data":{"value":"x"}}`)
	r.untilValue(t, namespace, "web", "1")
	r.publish(t, namespace, "db", "v3", fstest.MapFS{"b.yaml": configMap("db", "3")})
	r.ready(t, webKey, second.Revision)
}

func TestDependencyCycleIsNamedInFull(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	for _, name := range []string{"a", "b", "c"} {
		r.publish(t, namespace, name, "v1", fstest.MapFS{"b.yaml": configMap(name, "1")})
	}
	c := r.deploy(t, namespace, "c", on())
	r.until(t, c, "c is ready", says("all healthy"))
	r.deploy(t, namespace, "b", on("c"))
	a := r.deploy(t, namespace, "a", on("b"))
	r.until(t, a, "a is ready", says("all healthy"))
	r.edit(t, c, on("a")) // a and b wait for nothing then
	for key, way := range map[string]string{"a": "a→b→c→a", "b": "b→c→a→b", "c": "c→a→b→c"} {
		at := a
		at.Name = key
		d := r.unready(t, at, v1alpha1.ReasonDependencyCycle)
		if !conditions.IsTrue(d, meta.StalledCondition) || !strings.Contains(conditions.GetMessage(d, meta.ReadyCondition), way+":") {
			t.Errorf("%s is not Stalled with %s:\n%s", key, way, describe(d))
		}
	}
	r.edit(t, c, on())
	for _, key := range []string{"a", "b", "c"} {
		at := a
		at.Name = key
		r.until(t, at, key+" is ready again", says("all healthy"))
	}
}

func TestReadyExpr(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	db := r.publish(t, namespace, "db", "v1", fstest.MapFS{"b.yaml": configMap("db", "1")})
	dbKey := r.deploy(t, namespace, "db", on())
	r.ready(t, dbKey, db.Revision)
	published := r.publish(t, namespace, "web", "v1", fstest.MapFS{"b.yaml": configMap("web", "1")})
	with := func(expr string) func(*v1alpha1.BundleDeployment) {
		return func(d *v1alpha1.BundleDeployment) {
			on("db")(d)
			d.Spec.DependsOn[0].ReadyExpr = expr
		}
	}
	key := r.deploy(t, namespace, "web", with("dep.metadata.labels['schema'] == self.metadata.name"))
	r.until(t, key, "no answer", says(v1alpha1.ReasonDependencyNotReady, "no such key: labels"))
	r.edit(t, dbKey, func(d *v1alpha1.BundleDeployment) { d.Labels = map[string]string{"schema": "old"} })
	r.until(t, key, "not true", says("is ready, but its readyExpr is not true"))
	for what, expr := range map[string]string{"no expression": "dep.", "unknown": "other.x == 1", "M22, too much": bomb()} {
		r.edit(t, key, with(expr))
		d := r.unready(t, key, v1alpha1.ReasonInvalidExpression)
		if !conditions.IsTrue(d, meta.StalledCondition) || !says("readyExpr of db")(d) {
			t.Errorf("%s is not Stalled:\n%s", what, describe(d))
		}
	}
	r.edit(t, key, with("dep.metadata.?labels[?'schema'].orValue('') == self.metadata.name"))
	r.until(t, key, "not true", says("is ready, but its readyExpr is not true"))
	r.edit(t, dbKey, func(d *v1alpha1.BundleDeployment) { d.Labels = map[string]string{"schema": "web"} })
	r.ready(t, key, published.Revision)
}

// bomb is an expression that would take hours.
func bomb() string {
	const digits = "[0,1,2,3,4,5,6,7,8,9].all(x, "
	return strings.Repeat(digits, 12) + "true" + strings.Repeat(")", 12)
}

// untilValue waits until a ConfigMap has a value.
func (r *rig) untilValue(t *testing.T, namespace, name, want string) {
	t.Helper()
	r.eventually(t, t.Context(), name+" is "+want, func(ctx context.Context) (bool, string) {
		got := r.value(t, ctx, namespace, name)
		return got == want, got
	})
}
