// SPDX-License-Identifier: Apache-2.0

package requirement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Need is a kind or a package that a requirement is about. Only one of its fields is set.
type Need struct {
	Kind    schema.GroupVersionKind
	Package string
}

// Offer is a package of a catalog that the namespace sees. It provides the kind of a Need, or is its package.
type Offer struct{ Package, Catalog string }

// Lacking are the kinds and packages that unmet requirements are about, sorted. Kinds of any version are left out, and so is
// what must not be installed.
func (f Facts) Lacking(requirements []Requirement) []Need {
	var needs []Need
	for _, r := range requirements {
		switch {
		case f.Met(r) || r.Kind == RequireNone:
		case r.Kind == RequirePackage:
			needs = append(needs, Need{Package: r.Name})
		case r.GVK.Kind != "" && r.GVK.Version != "":
			needs = append(needs, Need{Kind: r.GVK})
		default:
			needs = append(needs, f.Lacking(r.Of)...)
		}
	}
	return Distinct(needs)
}

// Distinct sorts needs and drops repetitions.
func Distinct(needs []Need) []Need {
	slices.SortFunc(needs, func(a, b Need) int {
		return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.Kind.String(), b.Kind.String()))
	})
	return slices.Compact(needs)
}

// InstallOffered says which packages of catalogs provide a kind, and how to install one; instead if none is known to.
func (f Facts) InstallOffered(kind schema.GroupVersionKind, instead string) string {
	offers := f.Offers[Need{Kind: kind}]
	switch len(offers) {
	case 0:
		return instead
	case 1:
		return "install " + listed(offers) + ", which provides it, " + withDeployment(offers)
	}
	return "install one of the packages that provide it (" + listed(offers) + ") " + withDeployment(offers)
}

// catalogsWith says which catalogs have a package, and how to install it from there; "" if none is known to.
func (f Facts) catalogsWith(name string) string {
	offers := f.Offers[Need{Package: name}]
	if len(offers) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s; %s)", listed(offers), printing(offers))
}

// offered says for the parts of a compound what provides them; "" if nothing is known to.
func (f Facts) offered(r Requirement) string {
	var parts []string
	for _, need := range f.Lacking([]Requirement{r}) {
		offers := f.Offers[need]
		if len(offers) == 0 || len(parts) == mostParts {
			continue
		}
		text := listed(offers)
		if need.Package == "" {
			text = fmt.Sprintf("kind %s is provided by %s", need.Kind.Kind, text)
		}
		parts = append(parts, text+", "+printing(offers))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// withDeployment says how the first of several packages is installed.
func withDeployment(offers []Offer) string {
	return "with a BundleDeployment, and name that in spec.dependsOn (" + printing(offers) + ")"
}

// printing names the command with the manifests of the first of several packages.
func printing(offers []Offer) string {
	return "satchel resolve " + offers[0].Package + " --with-dependencies -o yaml prints the manifest"
}

// mostOffers is how many packages are named.
const mostOffers = 5

func listed(offers []Offer) string {
	var parts []string
	for _, offer := range offers[:min(len(offers), mostOffers)] {
		parts = append(parts, fmt.Sprintf("package %s of catalog %s", offer.Package, offer.Catalog))
	}
	if more := len(offers) - mostOffers; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}
