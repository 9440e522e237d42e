// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// sized is a CRD whose spec has the given fields.
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
		"off":      {reason: "nobody looks", crds: &v1alpha1.CRDOptions{UpgradeSafety: v1alpha1.Off}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			namespace, group := r.namespace(t), name+".example.com"
			first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": sized(group, "height: {type: integer}, width: {type: integer}")})
			key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) { d.Spec.RetryInterval = metav1.Duration{Duration: 1e9} })
			r.ready(t, key, first.Revision)

			second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": sized(group, "height: {type: integer}")})
			d := r.unready(t, key, v1alpha1.ReasonPlanRefused)
			if said := describe(d); !strings.Contains(said, "spec.width") || !strings.Contains(said, "boxes."+group) {
				t.Errorf("the refusal does not name the CRD and the field:\n%s", said)
			}
			if d.Status.LastAppliedRevision != first.Revision {
				t.Errorf("last applied is %s, want the first revision", d.Status.LastAppliedRevision)
			}
			r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.CRDs = tc.crds })
			d = r.ready(t, key, second.Revision)
			if warned := strings.Contains(strings.Join(d.Status.Warnings, "\n"), "spec.width"); warned != (tc.crds.UpgradeSafety == v1alpha1.Warn) {
				t.Errorf("%s: the warnings are %q", tc.reason, d.Status.Warnings)
			}
			r.remove(t, key)
		})
	}
}
