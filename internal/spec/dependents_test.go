// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/dependents"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

func needsPackage(name, versions string) convert.Requirement {
	return convert.Requirement{Kind: bundle.RequirePackage, Name: name, Versions: versions}
}

func needsKind(name string) convert.Requirement {
	return convert.Requirement{Kind: bundle.RequireGVK, GVK: schema.GroupVersionKind{Group: "db.example.org", Version: "v1", Kind: name}}
}

func compound(kind bundle.RequirementKind, of ...convert.Requirement) convert.Requirement {
	return convert.Requirement{Kind: kind, Of: of}
}

// What the status holds of the requirements of a bundle is read as them; what it cannot hold is left out.
func TestRequiresStatus(t *testing.T) {
	pkg := func(name, versions string) requirement.Requirement {
		return requirement.Requirement{Kind: requirement.RequirePackage, Name: name, Versions: versions}
	}
	kind := func(name string) requirement.Requirement {
		return requirement.Requirement{Kind: requirement.RequireGVK, GVK: schema.GroupVersionKind{Group: "db.example.org", Version: "v1", Kind: name}}
	}
	either := func(of ...requirement.Requirement) requirement.Requirement {
		return requirement.Requirement{Kind: requirement.RequireAny, Of: of}
	}
	crd := needsKind("Etcd")
	crd.Kind, crd.Name = bundle.RequireCRD, "etcds.db.example.org"
	for name, tc := range map[string]struct {
		requires []convert.Requirement
		want     []requirement.Requirement
	}{
		"nothing":                      {},
		"packages, kinds and CRDs":     {[]convert.Requirement{needsPackage("etcd", "<2.0.0"), crd, needsKind("Member")}, []requirement.Requirement{pkg("etcd", "<2.0.0"), kind("Etcd"), kind("Member")}},
		"All is its parts":             {[]convert.Requirement{compound(bundle.RequireAll, needsPackage("etcd", ""), compound(bundle.RequireAll, crd))}, []requirement.Requirement{pkg("etcd", ""), kind("Etcd")}},
		"Any are alternatives":         {[]convert.Requirement{compound(bundle.RequireAny, needsPackage("a", ""), crd), needsPackage("b", ""), compound(bundle.RequireAny, needsPackage("c", ""), compound(bundle.RequireAny, needsPackage("d", ">1.0.0")), needsKind("E"))}, []requirement.Requirement{either(pkg("a", ""), kind("Etcd")), pkg("b", ""), either(pkg("c", ""), pkg("d", ">1.0.0"), kind("E"))}},
		"Any of one is this one":       {[]convert.Requirement{compound(bundle.RequireAny, needsPackage("a", ""))}, []requirement.Requirement{pkg("a", "")}},
		"All in Any is left out":       {[]convert.Requirement{compound(bundle.RequireAny, needsPackage("a", ""), compound(bundle.RequireAll, crd)), needsPackage("b", "")}, []requirement.Requirement{pkg("b", "")}},
		"None is left out":             {[]convert.Requirement{compound(bundle.RequireNone, needsPackage("a", ""))}, nil},
		"Kubernetes is left out":       {[]convert.Requirement{{Kind: bundle.RequireKubeVersion, Versions: "1.30.0"}}, nil},
		"names that are too long":      {[]convert.Requirement{needsPackage(strings.Repeat("a", 254), ""), needsPackage("a", strings.Repeat("1", 256)), needsKind(strings.Repeat("K", 64))}, nil},
		"names of the greatest length": {[]convert.Requirement{needsPackage(strings.Repeat("a", 253), strings.Repeat("1", 255))}, []requirement.Requirement{pkg(strings.Repeat("a", 253), strings.Repeat("1", 255))}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &v1alpha1.BundleDeployment{}
			d.Status.Healthy.Requires = RequiresStatus(tc.requires)
			if diff := cmp.Diff(tc.want, requiredBy(d)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	var many []convert.Requirement
	for i := range 60 {
		many = append(many, compound(bundle.RequireAny, needsPackage(fmt.Sprint("a", i), ""), needsPackage("b", ""), needsPackage("c", "")))
	}
	if got := RequiresStatus(many); len(got) != 48 || got[47].AnyOf != 16 || got[45].Package != "a15" {
		t.Errorf("%d of at most 50 are in the status, and no alternatives without the others", len(got))
	}
}

// Those count that are on the same cluster, and are not being deleted.
func TestDependents(t *testing.T) {
	all := []v1alpha1.BundleDeployment{}
	for _, name := range []string{"etcd", "shop", "warns", "remote", "leaving", "new", "free"} {
		d := v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
		d.Status.Inventory = &v1alpha1.Inventory{Target: "here"}
		d.Status.Healthy.Requires = []v1alpha1.BundleRequirement{{Package: "etcd"}}
		switch name {
		case "warns":
			d.Spec.RegistryV1 = &v1alpha1.RegistryV1Options{Requirements: v1alpha1.Warn}
		case "remote":
			d.Status.Inventory.Target = "there"
		case "leaving":
			d.DeletionTimestamp = &metav1.Time{}
			*d.DeletionTimestamp = metav1.Now()
		case "new":
			d.Status.Inventory = nil
		case "free":
			d.Status.Healthy.Requires = nil
		}
		all = append(all, d)
	}
	requires := []requirement.Requirement{{Kind: requirement.RequirePackage, Name: "etcd"}}
	want := []dependents.Dependent{{Name: "shop", Policy: plan.Enforce, Requires: requires}, {Name: "warns", Policy: plan.Warn, Requires: requires}}
	if diff := cmp.Diff(want, Dependents(all, &all[0], "here")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Once the revision is applied, its package changes nothing.
func TestChangeOf(t *testing.T) {
	d := &v1alpha1.BundleDeployment{}
	empty := func(version string) bool {
		return ChangeOf(plan.Plan{}, d, "two", convert.Package{Name: "etcd", Version: version}).IsEmpty()
	}
	if !empty("2.0.0") {
		t.Error("the first installation takes something away")
	}
	d.Status.Healthy.Package, d.Status.Applied.Revision = &v1alpha1.PackageStatus{Name: "etcd", Version: "1.0.0"}, "one"
	if empty("2.0.0") || !empty("1.0.0") {
		t.Error("an upgrade takes nothing away, or the same version does")
	}
	d.Status.Applied.Revision = "two"
	if !empty("2.0.0") {
		t.Error("a revision that is applied takes something away")
	}
}
