// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Ten deployments of two namespaces have a regular expression that compiles to eight million instructions. Each is refused,
// with what to do, and the deployment of a third namespace goes on.
func TestM28PatternsOfIgnoreRules(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	victims := r.namespace(t)
	first := r.publish(t, victims, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	victim := r.deploy(t, victims, "app", nil)
	r.ready(t, victim, first.Revision)

	counted := "(" + strings.Repeat("[a-z0-9]?", 8) + "){1000}Z"
	ignores := func(d *v1alpha1.BundleDeployment) {
		d.Spec.Drift = &v1alpha1.DriftOptions{Ignore: []v1alpha1.IgnoreRule{
			{Paths: []string{"/data/value"}, Target: &v1alpha1.ObjectSelector{Name: counted}},
		}}
	}
	var refused []types.NamespacedName
	for range 2 {
		namespace := r.namespace(t)
		r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
		for i := range 5 {
			refused = append(refused, r.deploy(t, namespace, fmt.Sprintf("app-%d", i), both(ignores, func(d *v1alpha1.BundleDeployment) {
				d.Spec.SourceRef.Name = "app"
			})))
		}
	}
	for _, key := range refused {
		d := r.unready(t, key, v1alpha1.ReasonInvalidSpec)
		if message := conditions.GetMessage(d, "Ready"); !conditions.IsTrue(d, "Stalled") ||
			!strings.Contains(message, "spec.drift.ignore[0].target.name") || !strings.Contains(message, "repeat less") {
			t.Errorf("it does not say which pattern, and what to do:\n%s", describe(d))
		}
	}
	unpublished := r.deploy(t, r.namespace(t), "patched", func(d *v1alpha1.BundleDeployment) {
		d.Spec.Processors = []v1alpha1.Processor{{Patch: &v1alpha1.Patch{Target: &v1alpha1.ObjectSelector{Name: counted}, Patch: `[{"op":"add","path":"/data","value":{}}]`}}}
	})
	d := r.unready(t, unpublished, v1alpha1.ReasonInvalidSpec)
	if message := conditions.GetMessage(d, "Ready"); !strings.Contains(message, "spec.processors[0].patch.target: name: ") || !strings.Contains(message, "repeat less") {
		t.Errorf("a patch is not refused before its source is looked for:\n%s", describe(d))
	}
	second := r.publish(t, victims, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	r.ready(t, victim, second.Revision)
	r.holds(t, victims, "a", "two")
}
