// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// fieldsOf are the names of the fields in the spec of the boxes of a group.
func (r *rig) fieldsOf(t *testing.T, group string) string {
	t.Helper()
	crd := r.must(t, object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "boxes."+group))
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	first, _ := versions[0].(map[string]any)
	properties, _, _ := unstructured.NestedMap(first, "schema", "openAPIV3Schema", "properties", "spec", "properties")
	var names []string
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestReturningKeepsTheNewerCRD goes back to a revision with a CRD that lacks a field: the one on the cluster stays, also while a
// later revision fails, and is changed again by a revision that goes forward.
func TestReturningKeepsTheNewerCRD(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := namespace + ".example.com"
	t.Cleanup(func() {
		_ = r.admin.Delete(context.WithoutCancel(t.Context()), object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "boxes."+group))
	})
	earlier := fstest.MapFS{"a.yaml": sized(group, "height: {type: integer}"), "b.yaml": configMap("a", "one")}
	newer := fstest.MapFS{"a.yaml": sized(group, "height: {type: integer}, width: {type: integer}"), "b.yaml": configMap("a", "two")}
	first := r.publish(t, namespace, "app", "v1", earlier)
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	r.create(t, object(group+"/v1", "Box", namespace, "one")) // without one, nothing could be lost
	second := r.publish(t, namespace, "app", "v2", newer)
	r.ready(t, key, second.Revision)

	again := r.publish(t, namespace, "app", "v1", earlier)
	d := r.ready(t, key, again.Revision)
	r.holds(t, namespace, "a", "one")
	if got := r.fieldsOf(t, group); got != "height width" {
		t.Errorf("the fields of the CRD are %q after going back", got)
	}
	if !slices.ContainsFunc(d.Status.Warnings, func(w string) bool { return strings.Contains(w, "boxes."+group+" stays as it is on the cluster") }) {
		t.Errorf("the warnings are %q", d.Status.Warnings)
	}
	r.told(t, namespace, "PlanWarning: ")

	r.publish(t, namespace, "app", "v3", fstest.MapFS{"a.yaml": file("no: manifest")})
	r.unready(t, key, v1alpha1.ReasonConversionFailed)
	r.patch(t, r.must(t, aConfigMap(namespace, "a")), `{"data":{"value":"changed"}}`)
	r.holds(t, namespace, "a", "one")
	if got := r.fieldsOf(t, group); got != "height width" {
		t.Errorf("the fields of the CRD are %q while a later revision fails", got)
	}

	narrower := fstest.MapFS{"a.yaml": sized(group, "height: {type: integer}, depth: {type: integer}")}
	r.publish(t, namespace, "app", "v4", narrower)
	if said := describe(r.unready(t, key, v1alpha1.ReasonPlanRefused)); !strings.Contains(said, "spec.width") {
		t.Errorf("a revision that goes forward may not drop a field:\n%s", said)
	}
	wider := fstest.MapFS{"a.yaml": sized(group, "height: {type: integer}, width: {type: integer}, depth: {type: integer}")}
	r.ready(t, key, r.publish(t, namespace, "app", "v5", wider).Revision)
	if got := r.fieldsOf(t, group); got != "depth height width" {
		t.Errorf("the fields of the CRD are %q after going forward", got)
	}
	r.remove(t, key)
}

// TestRemediationKeepsTheNewerCRD: a revision that never becomes healthy has changed the CRD already, and is rolled back.
func TestRemediationKeepsTheNewerCRD(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := namespace + ".example.com"
	t.Cleanup(func() {
		_ = r.admin.Delete(context.WithoutCancel(t.Context()), object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "boxes."+group))
	})
	earlier, newer := good("one"), sickly("two")
	earlier["crd.yaml"] = sized(group, "height: {type: integer}")
	newer["crd.yaml"] = sized(group, "height: {type: integer}, width: {type: integer}")
	first := r.publish(t, namespace, "app", "v1", earlier)
	key := r.deploy(t, namespace, "app", both(quick, rollsBack(0, 4*time.Second)))
	r.ready(t, key, first.Revision)
	r.create(t, object(group+"/v1", "Box", namespace, "one")) // without one, nothing could be lost
	r.publish(t, namespace, "app", "v2", newer)
	d := r.unready(t, key, v1alpha1.ReasonRevisionRejected)
	if d.Status.Applied.Revision != first.Revision || r.fieldsOf(t, group) != "height width" {
		t.Errorf("fields %q:\n%s", r.fieldsOf(t, group), describe(d))
	}
	r.holds(t, namespace, "a", "one")
	r.remove(t, key)
}
