// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
	"github.com/satchel-dev/satchel/internal/spec"
)

// No field is lost in the translation, and both packages use the same names of kinds.
func TestRequirements(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "db.example.org", Version: "v1", Kind: "Etcd"}
	got := spec.Requirements([]convert.Requirement{{
		Kind: bundle.RequireAny, Message: "a store", Of: []convert.Requirement{
			{Kind: bundle.RequireCRD, Name: "etcds.db.example.org", GVK: kind},
			{Kind: bundle.RequirePackage, Name: "etcd", Versions: ">1.0.0"},
		},
	}})
	want := []requirement.Requirement{{
		Kind: requirement.RequireAny, Message: "a store", Of: []requirement.Requirement{
			{Kind: requirement.RequireCRD, Name: "etcds.db.example.org", GVK: kind},
			{Kind: requirement.RequirePackage, Name: "etcd", Versions: ">1.0.0"},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for from, to := range map[bundle.RequirementKind]requirement.Kind{
		bundle.RequireCRD: requirement.RequireCRD, bundle.RequireAPI: requirement.RequireAPI, bundle.RequireGVK: requirement.RequireGVK,
		bundle.RequirePackage: requirement.RequirePackage, bundle.RequireKubeVersion: requirement.RequireKubeVersion,
		bundle.RequireAll: requirement.RequireAll, bundle.RequireAny: requirement.RequireAny, bundle.RequireNone: requirement.RequireNone,
	} {
		if string(from) != string(to) {
			t.Errorf("conversion says %q, planning %q", from, to)
		}
	}
	if a, b := reflect.TypeFor[convert.Requirement]().NumField(), reflect.TypeFor[requirement.Requirement]().NumField(); a != b {
		t.Errorf("%d fields become %d", a, b)
	}
}
