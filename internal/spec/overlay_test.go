// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
	"github.com/satchel-dev/satchel/internal/spec"
)

// TestOverlay: no field of the spec is lost, the order is that of the spec, and the variables of each processor come from its
// own sources.
func TestOverlay(t *testing.T) {
	d := &v1alpha1.BundleDeployment{Spec: v1alpha1.BundleDeploymentSpec{Processors: []v1alpha1.Processor{
		{Variables: &v1alpha1.VariablesProcessor{ValuesFrom: []v1alpha1.VariablesReference{{Kind: "Secret", Name: "c"}}}},
		{Patch: &v1alpha1.Patch{Patch: "a: b", Target: &v1alpha1.ObjectSelector{
			Group: "g", Version: "v", Kind: "k", Namespace: "ns", Name: "n", LabelSelector: "l", AnnotationSelector: "a",
		}}},
		{Names: &v1alpha1.NamesProcessor{Prefix: "p", Suffix: "s"}},
		{Images: []v1alpha1.ImageOverride{{Name: "i", NewName: "n", NewTag: "t", Digest: "d"}}},
		{Variables: &v1alpha1.VariablesProcessor{Values: map[string]string{"a": "1"}, ValuesFrom: []v1alpha1.VariablesReference{{Kind: "ConfigMap", Name: "c"}}}},
		{Metadata: &v1alpha1.MetadataProcessor{Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}}},
		{ImageRewrites: []v1alpha1.ImageRewrite{{From: "f", To: "t"}}},
		{Patch: &v1alpha1.Patch{Patch: "c: d"}},
	}}}
	contents := spec.Contents{{Kind: "ConfigMap", Name: "c"}: {"b": "2", "not.one": "3"}, {Kind: "Secret", Name: "c"}: {"x": "4"}}
	got := spec.Conversion(d, spec.Given{Contents: contents}, convert.Limits{}).Overlay.Processors
	want := []overlay.Processor{
		{Variables: &overlay.Variables{Read: map[string]string{"x": "4"}}},
		{Patch: &overlay.Patch{Text: "a: b", Target: &overlay.Selector{
			Group: "g", Version: "v", Kind: "k", Namespace: "ns", Name: "n", LabelSelector: "l", AnnotationSelector: "a",
		}}},
		{Names: &overlay.Names{Prefix: "p", Suffix: "s"}},
		{Images: []overlay.Image{{Name: "i", NewName: "n", NewTag: "t", Digest: "d"}}},
		{Variables: &overlay.Variables{Given: map[string]string{"a": "1"}, Read: map[string]string{"b": "2"}}},
		{Metadata: &overlay.Metadata{Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}}},
		{ImageRewrites: []overlay.Rewrite{{From: "f", To: "t"}}},
		{Patch: &overlay.Patch{Text: "c: d"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	kinds := reflect.TypeFor[v1alpha1.Processor]()
	for i := range kinds.NumField() {
		if !slices.ContainsFunc(got, func(p overlay.Processor) bool { return !reflect.ValueOf(p).FieldByName(kinds.Field(i).Name).IsZero() }) {
			t.Errorf("no processor of the kind %s", kinds.Field(i).Name)
		}
	}
}
