// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

func noOwnedAPIServices(b *bundle.Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, owned := range b.CSV.Spec.APIServiceDefinitions.Owned {
		problems = append(problems, b.Problem("C1", "use a CustomResourceDefinition instead",
			"the bundle owns the API service %q, and aggregated API services are not supported", owned.GetName()))
	}
	return problems
}

func usableInstallModes(b *bundle.Bundle) []manifest.Problem {
	if b.SupportedModes() != (bundle.Modes{}) {
		return nil
	}
	return []manifest.Problem{b.Problem("C4", "support AllNamespaces, MultiNamespace, OwnNamespace or SingleNamespace in spec.installModes",
		"the bundle supports no install mode")}
}

func uniqueDeployments(b *bundle.Bundle) []manifest.Problem {
	var names []string
	for _, d := range b.Deployments() {
		names = append(names, d.Name)
	}
	var problems []manifest.Problem
	for _, name := range repeated(names) {
		problems = append(problems, b.Problem("V1", "rename one", "two deployments are named %q", name))
	}
	return problems
}

func deploymentNames(b *bundle.Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, d := range b.Deployments() {
		if messages := validation.IsDNS1123Subdomain(d.Name); len(messages) > 0 {
			problems = append(problems, b.Problem("V2", "rename it", "the name of deployment %q is not valid: %s", d.Name, strings.Join(messages, ", ")))
		}
	}
	return problems
}

func packageName(b *bundle.Bundle) []manifest.Problem {
	switch {
	case b.Package != "" && len(b.Package) <= longestPackage && !strings.ContainsFunc(b.Package, oddInPackage):
		return nil
	case b.Package != "":
		return []manifest.Problem{{File: bundle.AnnotationsFile, Rule: "V5",
			Message: fmt.Sprintf("%.64q, of %d bytes, cannot be the name of a package", b.Package, len(b.Package)),
			Remedy:  fmt.Sprintf("use at most %d letters, digits and -_. in the annotation %s", longestPackage, bundle.PackageAnnotation)}}
	}
	return []manifest.Problem{{File: bundle.AnnotationsFile, Rule: "V5", Message: "the bundle does not name its package",
		Remedy: "set the annotation " + bundle.PackageAnnotation}}
}

// longestPackage is what a label's prefix or an object's name may have at most.
const longestPackage = 253

func oddInPackage(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return !letter && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
}

func ownedCRDsPresent(b *bundle.Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, name := range b.OwnedCRDs() {
		if _, ok := b.CRD(name); !ok {
			problems = append(problems, b.Problem("V4", "add it to manifests/, or remove it from spec.customresourcedefinitions.owned",
				"the bundle owns the CustomResourceDefinition %q but does not contain it", name))
		}
	}
	return problems
}

// repeated returns the names that are there more than once, each once, sorted.
func repeated(names []string) []string {
	sorted := slices.Sorted(slices.Values(names))
	var out []string
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			out = append(out, sorted[i])
		}
	}
	return slices.Compact(out)
}
