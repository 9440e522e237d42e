// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/dependents"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/requirement"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

const (
	// mostRequires, longestName, longestVersions and longestKind are the limits of status.healthy.requires.
	mostRequires    = 50
	longestName     = 253
	longestVersions = 255
	longestKind     = 63
)

// RequiresStatus are the packages and kinds that a bundle requires, for its status. A compound is written as its parts, those of Any as
// alternatives. Other compounds, versions of Kubernetes and what is beyond the limits of the status are left out.
func RequiresStatus(of []convert.Requirement) []v1alpha1.BundleRequirement {
	var all []v1alpha1.BundleRequirement
	group := int32(0)
	for _, r := range conjuncts(of) {
		parts, ok := alternatives(r)
		if !ok || len(all)+len(parts) > mostRequires {
			continue
		}
		if len(parts) > 1 {
			group++
			for i := range parts {
				parts[i].AnyOf = group
			}
		}
		all = append(all, parts...)
	}
	return all
}

// conjuncts are requirements with the parts of All in its place.
func conjuncts(of []convert.Requirement) []convert.Requirement {
	var all []convert.Requirement
	for _, r := range of {
		if r.Kind == bundle.RequireAll {
			all = append(all, conjuncts(r.Of)...)
			continue
		}
		all = append(all, r)
	}
	return all
}

// alternatives are the packages and kinds of which one is required.
func alternatives(r convert.Requirement) ([]v1alpha1.BundleRequirement, bool) {
	switch r.Kind {
	case bundle.RequirePackage:
		return []v1alpha1.BundleRequirement{{Package: r.Name, Range: r.Versions}}, r.Name != "" && len(r.Name) <= longestName && len(r.Versions) <= longestVersions
	case bundle.RequireCRD, bundle.RequireAPI, bundle.RequireGVK:
		return []v1alpha1.BundleRequirement{{Group: r.GVK.Group, Version: r.GVK.Version, Kind: r.GVK.Kind}},
			r.GVK.Kind != "" && len(r.GVK.Group) <= longestName && len(r.GVK.Version) <= longestKind && len(r.GVK.Kind) <= longestKind
	case bundle.RequireAny:
		var all []v1alpha1.BundleRequirement
		for _, part := range r.Of {
			parts, ok := alternatives(part)
			if !ok {
				return nil, false
			}
			all = append(all, parts...)
		}
		return all, len(all) > 0
	}
	return nil, false
}

// requiredBy reads status.healthy.requires.
func requiredBy(d *v1alpha1.BundleDeployment) []requirement.Requirement {
	var all []requirement.Requirement
	groups := map[int32]int{}
	for _, one := range d.Status.Healthy.Requires {
		r := requirement.Requirement{Kind: requirement.RequirePackage, Name: one.Package, Versions: one.Range}
		if one.Package == "" {
			r = requirement.Requirement{Kind: requirement.RequireGVK, GVK: schema.GroupVersionKind{Group: one.Group, Version: one.Version, Kind: one.Kind}}
		}
		at, begun := groups[one.AnyOf]
		switch {
		case one.AnyOf == 0:
			all = append(all, r)
		case begun:
			all[at].Of = append(all[at].Of, r)
		default:
			groups[one.AnyOf] = len(all)
			all = append(all, requirement.Requirement{Kind: requirement.RequireAny, Of: []requirement.Requirement{r}})
		}
	}
	return all
}

// Dependents are the other deployments of a namespace on the cluster with the identity target that require something. Those that are
// being deleted require nothing any more.
func Dependents(deployments []v1alpha1.BundleDeployment, of *v1alpha1.BundleDeployment, target string) []dependents.Dependent {
	var all []dependents.Dependent
	for i := range deployments {
		other := &deployments[i]
		there := other.Status.Inventory != nil && other.Status.Inventory.Target == target
		if other.Name == of.Name || !there || len(other.Status.Healthy.Requires) == 0 || !other.DeletionTimestamp.IsZero() {
			continue
		}
		all = append(all, dependents.Dependent{Name: other.Name, Policy: plan.Enforcement(requirementsPolicy(&other.Spec)), Requires: requiredBy(other)})
	}
	return all
}

// RequiringPackage are the other deployments of a namespace that require the package of a deployment, and find it nowhere else.
func RequiringPackage(deployments []v1alpha1.BundleDeployment, of *v1alpha1.BundleDeployment) []string {
	provided, listed := of.Status.Healthy.Package, of.Status.Inventory
	if provided == nil || listed == nil {
		return nil
	}
	change := dependents.ChangeOf(plan.Plan{}, requirement.Package{Name: provided.Name, Version: provided.Version}, requirement.Package{})
	return change.Requiring(dependents.Others{Dependents: Dependents(deployments, of, listed.Target), Packages: Packages(deployments, of, listed.Target)})
}

// PackageStatus is the package of a bundle for its status; nil if it has none.
func PackageStatus(p convert.Package) *v1alpha1.PackageStatus {
	if p.Name == "" {
		return nil
	}
	return &v1alpha1.PackageStatus{Name: p.Name, Version: p.Version}
}

// ChangeOf is what a plan of a deployment changes of what others may require. Once the revision is applied, its package changes no
// more. A folder has no revision ("").
func ChangeOf(made plan.Plan, d *v1alpha1.BundleDeployment, revision string, contains convert.Package) dependents.Change {
	after := requirement.Package{Name: contains.Name, Version: contains.Version}
	before := after
	if provided := d.Status.Healthy.Package; provided != nil && (revision == "" || d.Status.Applied.Revision != revision) {
		before = requirement.Package{Name: provided.Name, Version: provided.Version}
	}
	return dependents.ChangeOf(made, before, after)
}
