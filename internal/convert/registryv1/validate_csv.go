// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

func noOwnedAPIServices(b *Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, owned := range b.CSV.Spec.APIServiceDefinitions.Owned {
		problems = append(problems, b.problem("C1", "use a CustomResourceDefinition instead",
			"the bundle owns the API service %q, and aggregated API services are not supported", owned.GetName()))
	}
	return problems
}

func usableInstallModes(b *Bundle) []manifest.Problem {
	if supportedModes(b) != (modes{}) {
		return nil
	}
	return []manifest.Problem{b.problem("C4", "support AllNamespaces, MultiNamespace, OwnNamespace or SingleNamespace in spec.installModes",
		"the bundle supports no install mode")}
}

func uniqueDeployments(b *Bundle) []manifest.Problem {
	var names []string
	for _, d := range b.deployments() {
		names = append(names, d.Name)
	}
	var problems []manifest.Problem
	for _, name := range repeated(names) {
		problems = append(problems, b.problem("V1", "rename one", "two deployments are named %q", name))
	}
	return problems
}

func deploymentNames(b *Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, d := range b.deployments() {
		if messages := validation.IsDNS1123Subdomain(d.Name); len(messages) > 0 {
			problems = append(problems, b.problem("V2", "rename it", "the name of deployment %q is not valid: %s", d.Name, strings.Join(messages, ", ")))
		}
	}
	return problems
}

func packageName(b *Bundle) []manifest.Problem {
	switch {
	case b.Package != "" && len(b.Package) <= longestPackage && !strings.ContainsFunc(b.Package, oddInPackage):
		return nil
	case b.Package != "":
		return []manifest.Problem{{File: annotationsFile, Rule: "V5",
			Message: fmt.Sprintf("%.64q, of %d bytes, cannot be the name of a package", b.Package, len(b.Package)),
			Remedy:  fmt.Sprintf("use at most %d letters, digits and -_. in the annotation %s", longestPackage, packageAnnotation)}}
	}
	return []manifest.Problem{{File: annotationsFile, Rule: "V5", Message: "the bundle does not name its package",
		Remedy: "set the annotation " + packageAnnotation}}
}

// longestPackage is what a label's prefix or an object's name may have at most.
const longestPackage = 253

func oddInPackage(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return !letter && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
}

func ownedCRDsPresent(b *Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, name := range b.ownedCRDs() {
		if _, ok := b.crd(name); !ok {
			problems = append(problems, b.problem("V4", "add it to manifests/, or remove it from spec.customresourcedefinitions.owned",
				"the bundle owns the CustomResourceDefinition %q but does not contain it", name))
		}
	}
	return problems
}

// ownedCRDs are the names in the CSV, sorted and without repetitions.
func (b *Bundle) ownedCRDs() []string {
	var names []string
	for _, owned := range b.CSV.Spec.CustomResourceDefinitions.Owned {
		names = append(names, owned.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// crd finds a CustomResourceDefinition of the bundle by name.
func (b *Bundle) crd(name string) (manifest.Manifest, bool) {
	if b.byName == nil {
		b.byName = make(map[string]manifest.Manifest, len(b.CRDs))
		for _, crd := range b.CRDs {
			b.byName[crd.Object.GetName()] = crd
		}
	}
	crd, ok := b.byName[name]
	return crd, ok
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
