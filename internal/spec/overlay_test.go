// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
	"github.com/satchel-dev/satchel/internal/spec"
)

// TestOverlay: no field of the spec is lost, and variables come from the sources in the spec.
func TestOverlay(t *testing.T) {
	d := &v1alpha1.BundleDeployment{Spec: v1alpha1.BundleDeploymentSpec{
		Patches: []v1alpha1.Patch{{Patch: "a: b", Target: &v1alpha1.ObjectSelector{
			Group: "g", Version: "v", Kind: "k", Namespace: "ns", Name: "n", LabelSelector: "l", AnnotationSelector: "a",
		}}, {Patch: "c: d"}},
		NamePrefix: "p", NameSuffix: "s",
		Images:         []v1alpha1.ImageOverride{{Name: "i", NewName: "n", NewTag: "t", Digest: "d"}},
		PostBuild:      &v1alpha1.VariablesProcessor{Substitute: map[string]string{"a": "1"}, SubstituteFrom: []v1alpha1.VariablesReference{{Kind: "ConfigMap", Name: "c"}}},
		CommonMetadata: &v1alpha1.MetadataProcessor{Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}},
		ImageRewrites:  []v1alpha1.ImageRewrite{{From: "f", To: "t"}},
	}}
	contents := spec.Contents{{Kind: "ConfigMap", Name: "c"}: {"b": "2", "not.one": "3"}, {Kind: "Secret", Name: "c"}: {"x": "4"}}
	got := spec.Conversion(d, spec.Given{Contents: contents}, convert.Limits{}).Overlay
	want := overlay.Options{
		Patches: []overlay.Patch{{Text: "a: b", Target: &overlay.Selector{
			Group: "g", Version: "v", Kind: "k", Namespace: "ns", Name: "n", LabelSelector: "l", AnnotationSelector: "a",
		}}, {Text: "c: d"}},
		NamePrefix: "p", NameSuffix: "s", Images: []overlay.Image{{Name: "i", NewName: "n", NewTag: "t", Digest: "d"}},
		Substitution: &overlay.Substitution{Given: map[string]string{"a": "1"}, Read: map[string]string{"b": "2"}},
		CommonLabels: map[string]string{"l": "1"}, CommonAnnotations: map[string]string{"a": "1"}, ImageRewrites: []overlay.Rewrite{{From: "f", To: "t"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	value := reflect.ValueOf(got)
	for i := range value.NumField() {
		if value.Field(i).IsZero() {
			t.Errorf("%s of the overlays has no value", value.Type().Field(i).Name)
		}
	}
}
