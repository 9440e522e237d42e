// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

var (
	etcd    = schema.GroupVersionKind{Group: "db.example.org", Version: "v1", Kind: "Etcd"}
	etcdCRD = requirement.Requirement{Kind: requirement.RequireCRD, Name: "etcds.db.example.org", GVK: etcd}
	anyEtcd = requirement.Requirement{Kind: requirement.RequireGVK, GVK: etcd}
)

func pkg(name, versions string) requirement.Requirement {
	return requirement.Requirement{Kind: requirement.RequirePackage, Name: name, Versions: versions}
}

func kube(version string) requirement.Requirement {
	return requirement.Requirement{Kind: requirement.RequireKubeVersion, Versions: version}
}

func of(kind requirement.Kind, parts ...requirement.Requirement) requirement.Requirement {
	return requirement.Requirement{Kind: kind, Of: parts}
}

// requiring is a plan of one object with requirements.
func requiring(policy plan.Enforcement, facts requirement.Facts, requirements ...requirement.Requirement) plan.Plan {
	return plan.Make(plan.Input{
		Owner: owner, Desired: []plan.Object{desired(one, "")}, Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{}, Facts: facts},
		Rules: plan.Rules{RequirementsPolicy: policy, Requirements: requirements},
	})
}

// Each unmet requirement is refused, with words that say what would provide it.
func TestRequirements(t *testing.T) {
	served := requirement.Facts{Kinds: map[schema.GroupVersionKind]bool{etcd: true}}
	version := func(text string) requirement.Facts { return requirement.Facts{KubeVersion: text} }
	installed := func(versions ...string) requirement.Facts {
		facts := requirement.Facts{Packages: []requirement.Package{{Name: "other", Version: "1.0.0"}}}
		for _, v := range versions {
			facts.Packages = append(facts.Packages, requirement.Package{Name: "etcd", Version: v})
		}
		return facts
	}
	compound := of(requirement.RequireAny, pkg("etcd", ">=2.0.0"), of(requirement.RequireAll, anyEtcd, of(requirement.RequireNone, pkg("other", ""))))
	tests := map[string]struct {
		reason   string
		requires requirement.Requirement
		facts    requirement.Facts
		want     []string // words of the violation; none: met
	}{
		"CRD":                    {"its kind is served", etcdCRD, served, nil},
		"CRD missing":            {"its name and group say what to install", etcdCRD, requirement.Facts{}, []string{"CustomResourceDefinition etcds.db.example.org", "kind Etcd of db.example.org/v1", `group "db.example.org"`}},
		"kind":                   {"it is served", anyEtcd, served, nil},
		"kind missing":           {"its group says what to install", anyEtcd, requirement.Facts{}, []string{"kind Etcd of db.example.org/v1", `group "db.example.org"`}},
		"API missing":            {"the same", requirement.Requirement{Kind: requirement.RequireAPI, GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}}, requirement.Facts{}, []string{"kind Pod of v1"}},
		"package":                {"in range", pkg("etcd", ">=1.0.0 <2.0.0"), installed("1.5.0"), nil},
		"package, any":           {"of no known version", pkg("etcd", ""), installed(""), nil},
		"package, one of two":    {"in range", pkg("etcd", ">=1.0.0 <2.0.0"), installed("0.9.0", "1.5.0"), nil},
		"package missing":        {"the range is said", pkg("etcd", ">=1.2.0"), installed(), []string{"package etcd in version >=1.2.0", "BundleDeployment in this namespace", "spec.registryV1.requirements to Warn"}},
		"package too old":        {"what is there is said", pkg("etcd", ">=1.2.0"), installed("1.1.0", "1.0.0"), []string{"package etcd in version >=1.2.0", "has it in version 1.0.0, 1.1.0"}},
		"package, version?":      {"it is unknown", pkg("etcd", ">=1.2.0"), installed(""), []string{"an unknown version"}},
		"Kubernetes":             {"the same", kube("1.36.3"), version("v1.36.3"), nil},
		"Kubernetes, newer":      {"minor versions are numbers", kube("1.9.0"), version("v1.10.0"), nil},
		"Kubernetes, older":      {"both are said", kube("1.37.0"), version("v1.36.3"), []string{"needs Kubernetes 1.37.0 or newer", "has v1.36.3"}},
		"Kubernetes of a vendor": {"what a distribution adds is no pre-release", kube("1.29.1"), version("v1.29.1-gke.100+k3s1"), nil},
		"Kubernetes, prerelease": {"any release is newer", kube("1.19.0-0"), version("v1.19.0"), nil},
		"Kubernetes, unknown":    {"the ServiceAccount may not ask", kube("1.19.0"), version(""), []string{"needs Kubernetes 1.19.0", "grant the ServiceAccount permission to get the URL /version"}},
		"compound, unknown":      {"the ServiceAccount may not ask", requirement.Requirement{Kind: requirement.RequireAll, Of: []requirement.Requirement{kube("1.19.0")}}, version(""), []string{"permission to get the URL /version", "to Warn"}},
		"compound, first":        {"one will do", compound, installed("2.0.0"), nil},
		"compound, second":       {"and what is excluded is not there", compound, served, nil},
		"compound, neither":      {"what is excluded is there", compound, requirement.Facts{Kinds: served.Kinds, Packages: installed().Packages}, []string{"any of (package etcd in version >=2.0.0; all of (kind Etcd of db.example.org/v1; none of (package other)))"}},
		"author's word":          {"it is told", requirement.Requirement{Kind: requirement.RequireAny, Message: "needs a store", Of: []requirement.Requirement{anyEtcd}}, requirement.Facts{}, []string{"its author says: needs a store"}},
		"unknown":                {"fail closed", requirement.Requirement{Kind: "Moon"}, requirement.Facts{}, []string{"moon of ()"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := requiring(plan.Enforce, tt.facts, tt.requires)
			if len(tt.want) == 0 {
				if len(p.Violations)+len(p.Warnings) != 0 {
					t.Errorf("%s: %v %v", tt.reason, p.Violations, p.Warnings)
				}
				return
			}
			if len(p.Violations) != 1 || p.Violations[0].Rule != violation.RequirementMissing || p.Violations[0].Remedy == "" {
				t.Fatalf("%s: violations %v", tt.reason, p.Violations)
			}
			for _, words := range tt.want {
				if text := p.Violations[0].String(); !strings.Contains(text, words) {
					t.Errorf("%s: %q does not say %q", tt.reason, text, words)
				}
			}
			warned := requiring(plan.Warn, tt.facts, tt.requires)
			if len(warned.Violations) != 0 || len(warned.Warnings) != 1 || warned.Warnings[0] != p.Violations[0].Message {
				t.Errorf("under Warn: %v %v", warned.Violations, warned.Warnings)
			}
			if off := requiring(plan.EnforcementNone, tt.facts, tt.requires); len(off.Violations)+len(off.Warnings) != 0 {
				t.Errorf("switched off: %v %v", off.Violations, off.Warnings)
			}
		})
	}
}

// All unmet requirements are reported at once, in one order.
func TestRequirementsAllAtOnce(t *testing.T) {
	all := []requirement.Requirement{kube("9.0.0"), pkg("etcd", ""), etcdCRD, anyEtcd}
	first := requiring(plan.Enforce, requirement.Facts{}, all...)
	slices.Reverse(all)
	second := requiring(plan.Enforce, requirement.Facts{}, all...)
	if len(first.Violations) != 4 || !slices.Equal(first.Violations, second.Violations) {
		t.Errorf("%v, then %v", first.Violations, second.Violations)
	}
}

// An object of the bundle with a missing kind reports everything that the requirement would.
func TestRequirementIsNotReportedTwice(t *testing.T) {
	in := plan.Input{
		Owner: owner, Desired: []plan.Object{desired(one, "")}, Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{}},
		Missing: []plan.MissingKind{{ID: inventory.ID{Group: etcd.Group, Kind: etcd.Kind, Namespace: "shop", Name: "store"}, Version: "v1"}},
		Rules:   plan.Rules{RequirementsPolicy: plan.Enforce, Requirements: []requirement.Requirement{etcdCRD}},
	}
	if p := plan.Make(in); len(p.Violations) != 1 || p.Violations[0].Rule != violation.KindMissing {
		t.Errorf("violations %v", p.Violations)
	}
}

// C50: remedies name the packages of catalogs that provide what is missing, and how to install them.
func TestC50Offers(t *testing.T) {
	kind, named := requirement.Need{Kind: etcd}, requirement.Need{Package: "etcd"}
	offers := map[requirement.Need][]requirement.Offer{
		kind: {{Package: "etcd-operator", Catalog: "community"}}, named: {{Package: "etcd", Catalog: "community"}, {Package: "etcd", Catalog: "own"}},
	}
	several := map[requirement.Need][]requirement.Offer{kind: {{Package: "a", Catalog: "x"}, {Package: "b", Catalog: "x"}, {Package: "c", Catalog: "x"},
		{Package: "d", Catalog: "x"}, {Package: "e", Catalog: "x"}, {Package: "f", Catalog: "x"}}}
	const first = "install package etcd-operator of catalog community, which provides it, with a BundleDeployment, and name that in spec.dependsOn " +
		"(satchel resolve etcd-operator --with-dependencies -o yaml prints the manifest)"
	for name, tc := range map[string]struct {
		requires requirement.Requirement
		offers   map[requirement.Need][]requirement.Offer
		lacking  []requirement.Need
		want     string
	}{
		"a CRD":         {etcdCRD, offers, []requirement.Need{kind}, first + ", or, where the operator does without"},
		"a kind":        {anyEtcd, offers, []requirement.Need{kind}, first + ", or, where the operator does without"},
		"several":       {anyEtcd, several, []requirement.Need{kind}, "one of the packages that provide it (package a of catalog x, package b of catalog x, package c of catalog x, package d of catalog x, package e of catalog x, 1 more) with"},
		"none is known": {anyEtcd, nil, []requirement.Need{kind}, `install what serves group "db.example.org" in that version, or`},
		"a package":     {pkg("etcd", ">=1.2.0"), offers, []requirement.Need{named}, "in this namespace (package etcd of catalog community, package etcd of catalog own; satchel resolve etcd --with-dependencies -o yaml prints the manifest), or"},
		"a compound": {of(requirement.RequireAll, anyEtcd, of(requirement.RequireNone, pkg("other", ""))), offers, []requirement.Need{kind},
			"(kind Etcd is provided by package etcd-operator of catalog community, satchel resolve etcd-operator --with-dependencies"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := requirement.Facts{Offers: tc.offers}
			if got := facts.Lacking([]requirement.Requirement{tc.requires, tc.requires}); !slices.Equal(got, tc.lacking) {
				t.Errorf("it lacks %v, want %v", got, tc.lacking)
			}
			if p := requiring(plan.Enforce, facts, tc.requires); len(p.Violations) != 1 || !strings.Contains(p.Violations[0].Remedy, tc.want) {
				t.Errorf("violations %v, want %q", p.Violations, tc.want)
			}
		})
	}
	met := requirement.Facts{Kinds: map[schema.GroupVersionKind]bool{etcd: true}, Packages: []requirement.Package{{Name: "other"}}}
	if got := met.Lacking([]requirement.Requirement{anyEtcd, of(requirement.RequireNone, pkg("other", ""), pkg("absent", ""))}); len(got) > 0 {
		t.Errorf("nothing is missing, and it lacks %v", got)
	}
	in := plan.Input{
		Owner: owner, Desired: []plan.Object{desired(one, "")}, Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{}, Facts: requirement.Facts{Offers: offers}},
		Missing: []plan.MissingKind{{ID: inventory.ID{Group: etcd.Group, Kind: etcd.Kind, Namespace: "shop", Name: "store"}, Version: "v1"}},
	}
	if p := plan.Make(in); len(p.Violations) != 1 || !strings.HasPrefix(p.Violations[0].Remedy, first+", or name the kind in spec.apply.optionalKinds") {
		t.Errorf("violations of an object %v", p.Violations)
	}
}

// Only the kinds in requirements are looked up, once each, and none when they
// are off.
func TestToAsk(t *testing.T) {
	in := plan.Input{Rules: plan.Rules{
		RequirementsPolicy: plan.Warn,
		Requirements: []requirement.Requirement{
			etcdCRD, anyEtcd, of(requirement.RequireAny, of(requirement.RequireAll, kube("1.0.0")), pkg("a", "")),
		},
	}}
	if kinds, version := in.ToAsk(); len(kinds) != 1 || kinds[0] != etcd || !version {
		t.Errorf("kinds %v, version %t", kinds, version)
	}
	in.RequirementsPolicy = plan.EnforcementNone
	if kinds, version := in.ToAsk(); len(kinds) != 0 || version {
		t.Errorf("switched off: kinds %v, version %t", kinds, version)
	}
}

// A range that was not validated by the conversion does no harm.
func FuzzRequirements(f *testing.F) {
	f.Add("1.2.3", ">=1.x || <0.5.0 !1.0.0", "v1.36.3")
	f.Add("", "1..x", "1")
	f.Fuzz(func(t *testing.T, installed, versions, cluster string) {
		facts := requirement.Facts{KubeVersion: cluster, Packages: []requirement.Package{{Name: "etcd", Version: installed}}}
		first := requiring(plan.Enforce, facts, pkg("etcd", versions), kube(versions))
		if second := requiring(plan.Enforce, facts, kube(versions), pkg("etcd", versions)); !slices.Equal(first.Violations, second.Violations) {
			t.Errorf("%v, then %v", first.Violations, second.Violations)
		}
	})
}
