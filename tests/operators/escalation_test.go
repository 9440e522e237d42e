// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/escalation"
	"github.com/satchel-dev/satchel/internal/apply/plan/impact"
)

// T30: a next version of each operator that changes what a patch release changes, the images and the version, goes on by
// itself in the mode OnEscalation.
func TestT30UpgradesOfOperators(t *testing.T) {
	for _, b := range corpus(t) {
		t.Run(b.name, func(t *testing.T) {
			d := &v1alpha1.BundleDeployment{}
			d.Name, d.Namespace = b.name, "shop"
			b.configure(d)
			before := render(t, b.files(), d).Objects
			next := b.changed(t, addition, patchRelease)
			after := render(t, os.DirFS(next), d).Objects
			change := impact.Of(before, after, "shop")
			for _, permission := range change.Permissions {
				t.Error("new permission:", permission)
			}
			for _, definition := range change.Definitions {
				t.Error("changed CRD:", definition)
			}
			for _, finding := range escalation.Of(before, after, "shop") {
				t.Error(finding)
			}
			more := render(t, os.DirFS(b.nextVersion(t)), d).Objects
			if len(impact.Of(before, more, "shop").Permissions) == 0 || len(escalation.Of(before, more, "shop")) == 0 {
				t.Error("a new permission and an annotation for others of its Pods do not count")
			}
			var leaving []inventory.ID
			for _, object := range before {
				if id := inventory.IDOf(object); !slices.Contains(ids(after), id) {
					leaving = append(leaving, id)
				}
			}
			for _, id := range impact.WithoutRenamed(leaving, ids(after)) {
				t.Error("would be deleted:", id)
			}
		})
	}
}

func ids(objects []*unstructured.Unstructured) []inventory.ID {
	var list []inventory.ID
	for _, object := range objects {
		list = append(list, inventory.IDOf(object))
	}
	return list
}

// patchRelease is the next patch release of an operator: another name, version and creation time of the CSV, and other images.
func patchRelease(t *testing.T, content []byte) []byte {
	t.Helper()
	csv := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &csv.Object); err != nil {
		t.Fatal(err)
	}
	csv.SetName("next-" + csv.GetName())
	change(t, csv.Object, "999.0.0", "spec", "version")
	change(t, csv.Object, "2030-01-01T00:00:00Z", "metadata", "annotations", "createdAt")
	deployments, _, _ := unstructured.NestedSlice(csv.Object, "spec", "install", "spec", "deployments")
	for _, item := range deployments {
		deployment, _ := item.(map[string]any)
		containers, _, _ := unstructured.NestedSlice(deployment, "spec", "template", "spec", "containers")
		for _, container := range containers {
			fields, _ := container.(map[string]any)
			image, _ := fields["image"].(string)
			fields["image"] = strings.Split(image, "@")[0] + "-next"
		}
		change(t, deployment, containers, "spec", "template", "spec", "containers")
	}
	change(t, csv.Object, deployments, "spec", "install", "spec", "deployments")
	out, err := yaml.Marshal(csv.Object)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
