// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

const group = "db.example.org"

// definition is the CRD of the kind Etcd with these versions.
func definition(versions ...string) *unstructured.Unstructured {
	var served []any
	for _, version := range versions {
		served = append(served, map[string]any{"name": version, "served": true})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "etcds." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "versions": served,
			"names": map[string]any{"kind": "Etcd", "plural": "etcds"},
		},
	}}
}

// writing is a plan that does something with an object.
func writing(verb plan.Verb, object *unstructured.Unstructured) plan.Plan {
	return plan.Plan{Stages: []plan.Stage{{Actions: []plan.Action{{Verb: verb, Object: plan.Object{ID: inventory.IDOf(object), Desired: object}}}}}}
}

// pruning is a plan that removes an object.
func pruning(how plan.How, id inventory.ID) plan.Plan {
	return plan.Plan{PruneStages: plan.PruneStages{Prune: []plan.DeletionStage{{Deletions: []plan.Deletion{{ID: id, How: how}}}}}}
}

func pkg(name, versions string) requirement.Requirement {
	return requirement.Requirement{Kind: requirement.RequirePackage, Name: name, Versions: versions}
}

func kind(version, name string) requirement.Requirement {
	return requirement.Requirement{Kind: requirement.RequireGVK, GVK: schema.GroupVersionKind{Group: group, Version: version, Kind: name}}
}

func either(of ...requirement.Requirement) requirement.Requirement {
	return requirement.Requirement{Kind: requirement.RequireAny, Of: of}
}

// Each plan that takes away what another deployment requires and has breaks that.
func TestBreaches(t *testing.T) {
	crd := inventory.IDOf(definition())
	service := inventory.ID{Group: "apiregistration.k8s.io", Kind: "APIService", Name: "v1." + group}
	from := requirement.Package{Name: "etcd", Version: "1.4.0"}
	to := func(version string) requirement.Package { return requirement.Package{Name: "etcd", Version: version} }
	tests := map[string]struct {
		reason        string
		made          plan.Plan
		before, after requirement.Package
		others        []requirement.Package
		requires      requirement.Requirement
		broken        bool
	}{
		"another version":        {"the range excludes it", plan.Plan{}, from, to("2.0.0"), nil, pkg("etcd", "<2.0.0"), true},
		"a version in the range": {"the range includes it", plan.Plan{}, from, to("1.5.0"), nil, pkg("etcd", "<2.0.0"), false},
		"no package any more":    {"the bundle is of another package", plan.Plan{}, from, requirement.Package{Name: "zookeeper", Version: "1.4.0"}, nil, pkg("etcd", ""), true},
		"not met before":         {"it is not this plan that takes it away", plan.Plan{}, from, to("2.0.0"), nil, pkg("etcd", ">=3.0.0"), false},
		"another package":        {"it does not change", plan.Plan{}, from, to("2.0.0"), nil, pkg("zookeeper", ""), false},
		"another deployment":     {"it has the package, too", plan.Plan{}, from, to("2.0.0"), []requirement.Package{to("1.0.0")}, pkg("etcd", "<2.0.0"), false},
		"an alternative":         {"the kind is served", plan.Plan{}, from, to("2.0.0"), nil, either(pkg("etcd", "<2.0.0"), kind("v1", "Etcd")), false},
		"no alternative":         {"the other kind is not served", plan.Plan{}, from, to("2.0.0"), nil, either(pkg("etcd", "<2.0.0"), kind("v1", "Other")), true},

		"a version that is not served": {"the CRD drops it", writing(plan.Update, definition("v2")), from, from, nil, kind("v1", "Etcd"), true},
		"a CRD that is recreated":      {"it has another version then", writing(plan.Recreate, definition("v2")), from, from, nil, kind("v1", "Etcd"), true},
		"a version that stays":         {"the CRD serves it", writing(plan.Update, definition("v1", "v2")), from, from, nil, kind("v1", "Etcd"), false},
		"any version":                  {"one is served", writing(plan.Update, definition("v2")), from, from, nil, kind("", "Etcd"), false},
		"a kind beside the CRD":        {"another CRD defines it", writing(plan.Update, definition("v2")), from, from, nil, kind("v1", "Member"), false},
		"a CRD as it is":               {"nothing is written", writing(plan.Unchanged, definition("v2")), from, from, nil, kind("v1", "Etcd"), false},
		"an alternative version":       {"the CRD brings it", writing(plan.Update, definition("v2")), from, from, nil, either(kind("v1", "Etcd"), kind("v2", "Etcd")), false},
		"a deleted CRD":                {"the kind goes with it", pruning(plan.Delete, crd), from, from, nil, kind("v1", "Etcd"), true},
		"a deleted CRD, any version":   {"all go with it", pruning(plan.DeleteUnused, crd), from, from, nil, kind("", "Etcd"), true},
		"a released CRD":               {"it stays", pruning(plan.Release, crd), from, from, nil, kind("v1", "Etcd"), false},
		"a deleted APIService":         {"its kinds go with it", pruning(plan.Delete, service), from, from, nil, kind("v1", "Member"), true},
		"another APIService":           {"it serves another version", pruning(plan.Delete, service), from, from, nil, kind("v1beta1", "Etcd"), false},
		"a deleted object":             {"it defines no kind", pruning(plan.Delete, inventory.ID{Kind: "ConfigMap", Name: "etcds." + group}), from, from, nil, kind("v1", "Etcd"), false},
	}
	now := served{}
	for _, gvk := range []schema.GroupVersionKind{
		{Group: group, Version: "v1", Kind: "Etcd"}, {Group: group, Kind: "Etcd"}, {Group: group, Version: "v1beta1", Kind: "Etcd"}, {Group: group, Version: "v1", Kind: "Member"},
	} {
		version := gvk.Version
		if version == "" {
			version = "v1"
		}
		now[gvk] = schema.GroupVersionResource{Group: group, Version: version, Resource: strings.ToLower(gvk.Kind) + "s"}
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := ChangeOf(tc.made, tc.before, tc.after)
			of := Others{Packages: tc.others, Dependents: []Dependent{{Name: "shop", Policy: plan.Enforce, Requires: []requirement.Requirement{tc.requires}}}}
			found := c.breaches(plan.Enforce, of, now)
			if (len(found.violations) == 1) != tc.broken || found.refusing["shop"] != tc.broken {
				t.Errorf("violations %v of %v, although %s", found.violations, found.refusing, tc.reason)
			}
			if tc.broken && c.IsEmpty() {
				t.Error("the change is said to be empty")
			}
		})
	}
}

// Both deployments say how strict it is, and many dependents are one violation.
func TestPolicies(t *testing.T) {
	c := ChangeOf(plan.Plan{}, requirement.Package{Name: "etcd", Version: "1.4.0"}, requirement.Package{Name: "etcd", Version: "2.0.0"})
	var of Others
	for i := range 12 {
		of.Dependents = append(of.Dependents, Dependent{Name: fmt.Sprintf("shop-%02d", i), Policy: plan.Enforce, Requires: []requirement.Requirement{pkg("etcd", "<2.0.0"), pkg("etcd", "<2.0.0")}})
	}
	of.Dependents = append(of.Dependents,
		Dependent{Name: "lenient", Policy: plan.Warn, Requires: []requirement.Requirement{pkg("etcd", "1.4.0")}},
		Dependent{Name: "silent", Policy: plan.EnforcementNone, Requires: []requirement.Requirement{pkg("etcd", "1.4.0")}})
	const many = "deployments shop-00, shop-01, shop-02, shop-03, shop-04, shop-05, shop-06, shop-07, shop-08, shop-09 and 2 more need package etcd in version <2.0.0, which is not there after this plan (etcd 1.4.0 becomes 2.0.0)"
	const lenient = "deployment lenient needs package etcd in version 1.4.0, which is not there after this plan (etcd 1.4.0 becomes 2.0.0)"
	for policy, want := range map[plan.Enforcement]struct{ violations, warnings []string }{
		plan.Enforce:         {[]string{many}, []string{lenient}},
		plan.Warn:            {nil, []string{lenient, many}},
		plan.EnforcementNone: {},
		"":                   {},
	} {
		found := c.breaches(policy, of, served{})
		var violations []string
		for _, v := range found.violations {
			if v.Rule != violation.BreaksDependent || !strings.Contains(v.Remedy, "spec.registryV1.requirements") {
				t.Errorf("violation %+v", v)
			}
			violations = append(violations, v.Message)
		}
		if diff := cmp.Diff([][]string{want.violations, want.warnings}, [][]string{violations, found.warnings}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", policy, diff)
		}
	}
}
