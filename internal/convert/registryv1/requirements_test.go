// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

func inCSV(text string) change {
	return change{csvFile, "  unknownField: ignored\n", "  unknownField: ignored\n" + text}
}

func requiredCRDs(text string) change {
	return change{csvFile, "  customresourcedefinitions:\n", "  customresourcedefinitions:\n    required: [" + text + "]\n"}
}

func inProperties(text string) change { return change{"metadata/properties.yaml", "", text} }

func inDependencies(text string) change {
	return change{"metadata/dependencies.yaml", "", "dependencies:\n" + text}
}

func constrained(text string) change {
	return inDependencies("- type: olm.constraint\n  value: " + text)
}

// P13: everything that a bundle says it needs is read, wherever it says so; what it brings itself it does not need, and
// what cannot be checked is said.
func TestP13Requirements(t *testing.T) {
	tests := map[string]struct {
		reason   string
		change   change
		want     []string
		warnings []string // words of them
	}{
		"none":                {"most bundles need nothing", change{csvFile, "  unknownField: ignored\n", ""}, nil, nil},
		"Kubernetes":          {"as OLM v0 reads it", inCSV("  minKubeVersion: 1.19.0-0\n"), []string{"Kubernetes 1.19.0-0 or newer"}, nil},
		"Kubernetes, loosely": {"published bundles write it so", inCSV("  minKubeVersion: ' v1.20'\n"), []string{"Kubernetes 1.20.0 or newer"}, nil},
		"Kubernetes, empty":   {"it says nothing", inCSV("  minKubeVersion: ''\n"), nil, nil},
		"Kubernetes, garbage": {"OLM v1 does not read it: no reason to refuse", inCSV("  minKubeVersion: newest\n"), nil, []string{`minKubeVersion "newest"`}},
		"CRD": {"the group is in its name", requiredCRDs("{name: etcds.db.example.org, version: v1, kind: Etcd}"),
			[]string{"CustomResourceDefinition etcds.db.example.org (kind Etcd of db.example.org/v1)"}, nil},
		"CRD without version": {"any version will do", requiredCRDs("{name: etcds.db.example.org, kind: Etcd}"),
			[]string{"CustomResourceDefinition etcds.db.example.org (kind Etcd of db.example.org)"}, nil},
		"own CRD":              {"the bundle brings it", requiredCRDs("{name: gadgets.tools.example.org, version: v1, kind: Gadget}"), nil, nil},
		"own CRD, not served":  {"no CRD serves that version", requiredCRDs("{name: gadgets.tools.example.org, version: v9, kind: Gadget}"), []string{"CustomResourceDefinition gadgets.tools.example.org (kind Gadget of tools.example.org/v9)"}, nil},
		"CRD without a group":  {"it cannot be looked up", requiredCRDs("{name: etcds, version: v1, kind: Etcd}"), nil, []string{`"etcds"`}},
		"API server":           {"an extension brings it", inCSV("  apiservicedefinitions: {required: [{name: x, group: a.example.org, version: v1, kind: Kin}]}\n"), []string{"kind Kin of a.example.org/v1"}, nil},
		"native API":           {"the core group is empty", inCSV("  nativeAPIs: [{group: '', version: v1, kind: Pod}, {group: apps, version: v1, kind: Deployment}]\n"), []string{"kind Deployment of apps/v1", "kind Pod of v1"}, nil},
		"native API, half":     {"it cannot be looked up", inCSV("  nativeAPIs: [{group: apps, kind: Deployment}]\n"), nil, []string{"lacks its version or kind"}},
		"property, kind":       {"as a catalog has it", inProperties("- {type: olm.gvk.required, value: {group: db.example.org, version: v1, kind: Etcd}}"), []string{"kind Etcd of db.example.org/v1"}, nil},
		"property, package":    {"as a catalog has it", inProperties("- {type: olm.package.required, value: {packageName: etcd, versionRange: '>=1.0.0 <2.0.0'}}"), []string{"package etcd in version >=1.0.0 <2.0.0"}, nil},
		"property, provided":   {"it is about the bundle itself", inProperties("- {type: olm.gvk, value: {group: db.example.org, version: v1, kind: Etcd}}"), nil, nil},
		"property, constraint": {"as a catalog has it", inProperties("- {type: olm.constraint, value: {package: {packageName: etcd}}}"), []string{"package etcd"}, nil},
		"dependency, kind":     {"as a bundle has it", inDependencies("- {type: olm.gvk, value: {group: db.example.org, version: v1, kind: Etcd}}"), []string{"kind Etcd of db.example.org/v1"}, nil},
		"dependency, package":  {"with the word that bundles use", inDependencies("- {type: olm.package, value: {packageName: etcd, version: '>0.9.0'}}"), []string{"package etcd in version >0.9.0"}, nil},
		"dependency, own kind": {"the bundle brings it", inDependencies("- {type: olm.gvk, value: {group: tools.example.org, version: v1, kind: Gadget}}"), nil, nil},
		"dependency, label":    {"only catalogs know labels", inDependencies("- {type: olm.label, value: {label: x}}"), nil, []string{`type "olm.label"`}},
		"compound": {"nested, each in words", constrained("{failureMessage: needs a store, any: {constraints: [{package: {packageName: etcd, versionRange: '>1.0.0'}}, {all: {constraints: [{gvk: {group: a.io, version: v1, kind: A}}, {not: {constraints: [{package: {packageName: b}}]}}]}}]}}"),
			[]string{"any of (package etcd in version >1.0.0; all of (kind A of a.io/v1; none of (package b)))"}, nil},
		"CEL":        {"it is about catalogs", constrained("{failureMessage: certified only, cel: {rule: 'properties.exists(p, p.type == \"certified\")'}}"), nil, []string{"CEL", "certified only"}},
		"CEL in all": {"the others still count", constrained("{all: {constraints: [{cel: {rule: x}}, {package: {packageName: b}}]}}"), []string{"all of (package b)"}, []string{"CEL"}},
		"CEL in any": {"it may be what is met", constrained("{any: {constraints: [{cel: {rule: x}}, {package: {packageName: b}}]}}"), nil, []string{"CEL"}},
		"CEL in not": {"it may be what is met", constrained("{not: {constraints: [{cel: {rule: x}}]}}"), nil, []string{"CEL"}},
		"newer sort": {"an unknown sort is not checked", constrained("{failureMessage: later, moon: {phase: full}}"), nil, []string{"no known sort", "later"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bundle, problems := bundle.Parse(bundleWith(t, "gadget", tt.change), manifest.Limits{}, false)
			if len(problems) > 0 {
				t.Fatalf("%s: %v", tt.reason, problems)
			}
			var got []string
			for _, r := range bundle.Requirements {
				got = append(got, r.String())
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tt.reason, diff)
			}
			warnings := strings.Join(bundle.Warnings, "\n")
			for _, words := range tt.warnings {
				if !strings.Contains(warnings, words) {
					t.Errorf("%s: warnings %q do not say %q", tt.reason, warnings, words)
				}
			}
			if checked := strings.Contains(warnings, "not checked"); checked != (len(tt.warnings) > 0) {
				t.Errorf("%s: warnings %q", tt.reason, warnings)
			}
		})
	}
}

// M21: what a catalog would refuse is refused, with the file and without an end.
func TestM21Requirements(t *testing.T) {
	deep := "{package: {packageName: a}}"
	for range 12 {
		deep = "{all: {constraints: [" + deep + "]}}"
	}
	many, wide := "", ""
	for i := range 1100 {
		many += fmt.Sprintf("- {type: olm.package, value: {packageName: p%d, version: '>1.0.0'}}\n", i)
		wide += fmt.Sprintf("{package: {packageName: p%d}},", i)
	}
	tests := map[string]struct {
		change change
		want   string
	}{
		"value of a kind":  {inDependencies("- {type: olm.gvk, value: Etcd}"), "value of olm.gvk"},
		"no value":         {inDependencies("- {type: olm.package}"), "value of olm.package"},
		"kind incomplete":  {inDependencies("- {type: olm.gvk, value: {group: a}}"), "lacks its version or kind"},
		"no package name":  {inDependencies("- {type: olm.package, value: {version: '1'}}"), "lacks its name"},
		"no range":         {inDependencies("- {type: olm.package, value: {packageName: a, version: 'new or newer'}}"), "no range of versions"},
		"endless range":    {inDependencies("- {type: olm.package, value: {packageName: a, version: '" + strings.Repeat(">=0.0.0 || ", 10000) + ">1.0.0'}}"), "no range of versions"},
		"range inside":     {constrained("{any: {constraints: [{package: {packageName: a, versionRange: '>'}}]}}"), "no range of versions"},
		"nested too deep":  {constrained(deep), "nested more than 10 deep"},
		"too many":         {inDependencies(many), "more than 1000 requirements"},
		"too many in one":  {constrained("{all: {constraints: [" + wide + "]}}"), "more than 1000 requirements"},
		"in the property":  {inProperties("- {type: olm.package.required, value: {packageName: a, versionRange: '=>1'}}"), "no range of versions"},
		"not a constraint": {constrained("[]"), "value of olm.constraint"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, problems := bundle.Parse(bundleWith(t, "gadget", tt.change), manifest.Limits{}, false)
			if len(problems) != 1 || !strings.Contains(problems[0].Message, tt.want) || problems[0].File != tt.change.file || problems[0].Remedy == "" || len(problems[0].Message) > 500 {
				t.Errorf("problems %+v, want %q", problems, tt.want)
			}
		})
	}
}

// What is said in several places is required once, and in the most telling words.
func TestRequirementsAreDistinct(t *testing.T) {
	files := bundleWith(t, "gadget", requiredCRDs("{name: etcds.db.example.org, version: v1, kind: Etcd}, {name: etcds.db.example.org, version: v1, kind: Etcd}"),
		inCSV("  nativeAPIs: [{group: apps, version: v1, kind: Deployment}]\n"),
		inProperties("- {type: olm.gvk.required, value: {group: db.example.org, version: v1, kind: Etcd}}\n- {type: olm.gvk.required, value: {group: apps, version: v1, kind: Deployment}}\n- {type: olm.package.required, value: {packageName: b, versionRange: '>1.0.0'}}"),
		inDependencies("- {type: olm.package, value: {packageName: b, version: '>1.0.0'}}\n- {type: olm.gvk, value: {group: db.example.org, version: v1, kind: Etcd}}"))
	rendered, err := Convert(files, testOptions(), manifest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rendered.Requirements {
		got = append(got, string(r.Kind)+": "+r.String())
	}
	want := []string{"API: kind Deployment of apps/v1", "CRD: CustomResourceDefinition etcds.db.example.org (kind Etcd of db.example.org/v1)", "Package: package b in version >1.0.0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The version is the ClusterServiceVersion's; where that has none, the catalog's of this package.
func TestPackageOfBundle(t *testing.T) {
	without := change{csvFile, "  version: 1.2.3\n", ""}
	property := func(name, version string) change {
		return inProperties(fmt.Sprintf("- {type: olm.package, value: {packageName: %s, version: %s}}", name, version))
	}
	tests := map[string]struct {
		changes []change
		want    bundle.Package
	}{
		"of the CSV":           {[]change{property("gadget", "9.9.9")}, bundle.Package{Name: "gadget", Version: "1.2.3"}},
		"of the catalog":       {[]change{without, property("gadget", "9.9.9")}, bundle.Package{Name: "gadget", Version: "9.9.9"}},
		"of another package":   {[]change{without, property("other", "9.9.9")}, bundle.Package{Name: "gadget", Version: ""}},
		"not a version at all": {[]change{without, property("gadget", "newest")}, bundle.Package{Name: "gadget", Version: ""}},
		"nowhere":              {[]change{without}, bundle.Package{Name: "gadget", Version: ""}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			rendered, err := Convert(bundleWith(t, "gadget", tt.changes...), testOptions(), manifest.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, rendered.Package); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
