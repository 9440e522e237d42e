// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// inPhase adds the annotation to a manifest.
func inPhase(phase string, manifest *fstest.MapFile) *fstest.MapFile {
	return file(strings.Replace(string(manifest.Data), "metadata: {", "metadata: {annotations: {satchel.dev/phase: '"+phase+"'}, ", 1))
}

// TestPhases wants a later phase to begin when the earlier ones are healthy, and no worker to wait for that.
func TestPhases(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	bundle := func(spec string) fstest.MapFS {
		return fstest.MapFS{
			"a.yaml": sickWorkload("", spec), "b.yaml": configMap("first", "1"),
			"c.yaml": inPhase("10", configMap("second", "1")), "d.yaml": inPhase("20", configMap("third", "1")),
		}
	}
	r.publish(t, namespace, "app", "v1", bundle("nodeSelector: {example.org/there-is: none}"))
	key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
		d.Spec.Health.Timeout = v1alpha1.Duration{Duration: 4 * time.Second}
	})
	d := r.until(t, key, "phase 10 waits", says(v1alpha1.ReasonHealthProgressing, "phase 10 waits until what comes before it is healthy", "Deployment.apps "+namespace+"/web"))
	if !conditions.IsUnknown(d, v1alpha1.AppliedCondition) || d.Status.Applied.Revision != "" {
		t.Errorf("waiting is no failure, and not all is applied:\n%s", describe(d))
	}
	r.unready(t, key, v1alpha1.ReasonHealthFailed)
	if !r.get(t, aConfigMap(namespace, "first")) || r.get(t, aConfigMap(namespace, "second")) {
		t.Error("it should have the first phase, and not the second")
	}
	began := time.Now()
	second := r.publish(t, namespace, "app", "v2", bundle("terminationGracePeriodSeconds: 0"))
	d = r.ready(t, key, second.Revision)
	t.Logf("all phases of the next revision took %s", time.Since(began).Round(time.Millisecond))
	r.must(t, aConfigMap(namespace, "third"))
	if d.Status.Objects.Applied != 4 {
		t.Errorf("status.objects is %+v", *d.Status.Objects)
	}
	r.publish(t, namespace, "app", "v3", fstest.MapFS{"c.yaml": inPhase("soon", configMap("second", "1"))})
	r.until(t, key, "the phase is refused", says(v1alpha1.ReasonPlanRefused, `the annotation satchel.dev/phase is "soon"`))
}

// TestPhasesOfDeletion wants the objects of a lower phase to stay until those of higher ones are gone,
// when they leave the bundle and when the deployment goes.
func TestPhasesOfDeletion(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	all := fstest.MapFS{
		"a.yaml": workload("back", "example.org/web:1"), "b.yaml": inPhase("20", workload("front", "example.org/web:1")), "c.yaml": configMap("c", "one"),
	}
	key := client.ObjectKey{Namespace: namespace, Name: "app"}
	front, back := object("apps/v1", "Deployment", namespace, "front"), object("apps/v1", "Deployment", namespace, "back")
	inOrder := func(how string) {
		t.Helper()
		r.until(t, key, "the front is waited for", func(d *v1alpha1.BundleDeployment) bool {
			return strings.Contains(conditions.GetMessage(d, "Ready"), "front is being deleted and waits for its finalizers example.org/hold")
		})
		if r.must(t, back).GetDeletionTimestamp() != nil {
			t.Errorf("%s: the back goes before the front is gone", how)
		}
		r.patch(t, front, `{"metadata":{"finalizers":null}}`)
		r.gone(t, back)
	}
	install := func(tag string) {
		t.Helper()
		published := r.publish(t, namespace, "app", tag, all)
		if tag == "v1" {
			r.deploy(t, namespace, "app", quick)
		}
		r.ready(t, key, published.Revision)
		r.patch(t, front, `{"metadata":{"finalizers":["example.org/hold"]}}`)
	}
	install("v1")
	less := r.publish(t, namespace, "app", "v2", fstest.MapFS{"c.yaml": all["c.yaml"]})
	inOrder("prune")
	r.ready(t, key, less.Revision)
	install("v3")
	r.startRemoval(t, key)
	inOrder("removal")
	r.remove(t, key)
}

// TestRanksOrderAStage applies files in the order of their numbers.
func TestRanksOrderAStage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{
		"20-a.yaml": configMap("c", "1"), "a.yaml": configMap("d", "1"), "3_z.yaml": configMap("b", "1"), "1-z.yaml": configMap("a", "1"),
	})
	r.ready(t, r.deploy(t, namespace, "app", nil), published.Revision)
	last := 0
	for _, name := range []string{"a", "b", "c", "d"} {
		version, err := strconv.Atoi(r.must(t, aConfigMap(namespace, name)).GetResourceVersion())
		if err != nil || version <= last {
			t.Errorf("%s was written at %d, after %d: %v", name, version, last, err)
		}
		last = version
	}
}
