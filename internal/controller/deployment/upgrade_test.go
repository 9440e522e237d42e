// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// sized is a CRD with the given fields in its spec.
func sized(group, fields string) *fstest.MapFile {
	return file(fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Box, listKind: BoxList, plural: boxes, singular: box}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {%[2]s}}
`, group, fields))
}

// TestUpgradeSafety drops a field of a CRD: refused, then exempted.
func TestUpgradeSafety(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		crds   *v1alpha1.CRDOptions
	}{
		"exempted": {reason: "one CRD is not looked at", crds: &v1alpha1.CRDOptions{UpgradeSafetyExemptions: []string{"boxes.exempted.example.com"}}},
		"warned":   {reason: "all are applied, with a warning", crds: &v1alpha1.CRDOptions{UpgradeSafety: v1alpha1.Warn}},
		"off":      {reason: "the check is off", crds: &v1alpha1.CRDOptions{UpgradeSafety: v1alpha1.EnforcementNone}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			namespace, group := r.namespace(t), name+".example.com"
			first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": sized(group, "height: {type: integer}, width: {type: integer}")})
			key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) { d.Spec.RetryInterval = v1alpha1.Duration{Duration: 1e9} })
			r.ready(t, key, first.Revision)
			r.create(t, object(group+"/v1", "Box", namespace, "one")) // without one, nothing could break

			second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": sized(group, "height: {type: integer}")})
			d := r.unready(t, key, v1alpha1.ReasonPlanRefused)
			if said := describe(d); !strings.Contains(said, "spec.width") || !strings.Contains(said, "boxes."+group) {
				t.Errorf("the refusal does not name the CRD and the field:\n%s", said)
			}
			if d.Status.Applied.Revision != first.Revision {
				t.Errorf("last applied is %s, want the first revision", d.Status.Applied.Revision)
			}
			seen := r.record(t, key)
			r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Apply.CRDs = tc.crds })
			r.ready(t, key, second.Revision)
			r.handled(t, key)
			if r.checkWarned(t, key, tc.crds.UpgradeSafety == v1alpha1.Warn, seen()); t.Failed() {
				t.Logf("%s: %s", name, tc.reason)
			}
			r.remove(t, key)
		})
	}
}

// A warning of the plan is one event, however often the same attempt fails.
func TestPlanWarningIsToldOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := namespace + ".example.com"
	t.Cleanup(func() {
		boxes := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "boxes."+group)
		_ = r.admin.Delete(context.WithoutCancel(t.Context()), boxes)
	})
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": sized(group, "height: {type: integer}, width: {type: integer}")})
	key := r.deploy(t, namespace, "app", both(quick, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Apply.CRDs = &v1alpha1.CRDOptions{UpgradeSafety: v1alpha1.Warn}
	}))
	r.ready(t, key, first.Revision)
	lost := sized(group, "height: {type: integer}")
	r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": lost, "b.yaml": file("apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 0}]}")})
	d := r.unready(t, key, v1alpha1.ReasonDryRunFailed)
	if len(d.Status.Warnings) == 0 || !strings.Contains(d.Status.Warnings[0], "spec.width") {
		t.Errorf("the warnings are %q", d.Status.Warnings)
	}
	r.looks(t, namespace, "installer", 3)
	seen := r.record(t, key)
	third := r.publish(t, namespace, "app", "v3", fstest.MapFS{"a.yaml": lost})
	r.ready(t, key, third.Revision)
	r.looks(t, namespace, "installer", 2)
	r.checkWarned(t, key, true, seen())
}

// checkWarned checks that the lost field is warned of, once and for as long as the
// revision stays, or not at all.
func (r *rig) checkWarned(t *testing.T, key client.ObjectKey, want bool, seen []*v1alpha1.BundleDeployment) {
	t.Helper()
	if want {
		r.told(t, key.Namespace, "PlanWarning: ")
	}
	told := slices.DeleteFunc(r.events(t, key.Namespace, key.Name), func(event string) bool { return !strings.HasPrefix(event, "PlanWarning: ") })
	if len(told) > 1 || (len(told) == 1 && strings.Contains(told[0], "spec.width")) != want {
		t.Errorf("events that warn: %q, want one: %v", told, want)
	}
	var d v1alpha1.BundleDeployment
	if err := r.admin.Get(t.Context(), key, &d); err != nil {
		t.Fatal(err)
	}
	if warned := strings.Contains(strings.Join(d.Status.Warnings, "\n"), "spec.width"); warned != want {
		t.Errorf("the warnings are %q, want one: %v", d.Status.Warnings, want)
	}
	inCondition := slices.ContainsFunc(seen, func(d *v1alpha1.BundleDeployment) bool {
		return conditions.IsTrue(d, v1alpha1.PlannedCondition) && strings.Contains(conditions.GetMessage(d, v1alpha1.PlannedCondition), "spec.width")
	})
	if inCondition != want {
		t.Errorf("Planned tells of the lost field: %v, want %v", inCondition, want)
	}
}
