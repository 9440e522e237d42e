// SPDX-License-Identifier: Apache-2.0

package requirement

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

// Asked returns the kinds that requirements are about, sorted, and whether they are about the version of Kubernetes.
func Asked(requirements []Requirement) (kinds []schema.GroupVersionKind, version bool) {
	var walk func([]Requirement)
	walk = func(requirements []Requirement) {
		for _, r := range requirements {
			switch r.Kind {
			case RequireCRD, RequireAPI, RequireGVK:
				kinds = append(kinds, r.GVK)
			}
			walk(r.Of)
			version = version || r.asksVersion()
		}
	}
	walk(requirements)
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(kinds), version
}

// Unmet is the violation for a requirement that the cluster does not meet.
func (f Facts) Unmet(r Requirement) violation.Violation {
	const orWarn = "set spec.registryV1.requirements to Warn"
	found := violation.Violation{Rule: violation.RequirementMissing}
	switch r.Kind {
	case RequireCRD:
		found.Object = inventory.ID{Group: crds.DefinitionGroup, Kind: crds.DefinitionKind, Name: r.Name}
		found.Message = fmt.Sprintf("the bundle needs the CustomResourceDefinition %s, and the cluster does not know kind %s of %s", r.Name, r.GVK.Kind, kindGroup(r.GVK))
		found.Remedy = f.InstallOffered(r.GVK, fmt.Sprintf("install what brings it for group %q", r.GVK.Group)) + ", or, where the operator does without, " + orWarn
	case RequireAPI, RequireGVK:
		found.Message = fmt.Sprintf("the bundle needs kind %s of %s, which the cluster does not know", r.GVK.Kind, kindGroup(r.GVK))
		found.Remedy = f.InstallOffered(r.GVK, fmt.Sprintf("install what serves group %q in that version", r.GVK.Group)) + ", or, where the operator does without, " + orWarn
	case RequirePackage:
		found.Message = "the bundle needs " + r.String() + f.instead(r.Name)
		found.Remedy = fmt.Sprintf("install %s with a BundleDeployment in this namespace%s, or, where it comes from elsewhere, %s", r.String(), f.catalogsWith(r.Name), orWarn)
	case RequireKubeVersion:
		found.Message = fmt.Sprintf("the bundle needs Kubernetes %s or newer, and the cluster has %s", r.Versions, f.KubeVersion)
		found.Remedy = "upgrade the cluster, install an older version of the bundle, or " + orWarn
		if f.KubeVersion == "" {
			found.Message = fmt.Sprintf("the bundle needs Kubernetes %s or newer, and the ServiceAccount may not ask for the cluster's version", r.Versions)
			found.Remedy = grantVersion + ", or " + orWarn
		}
	default:
		found.Message = "the bundle needs " + r.String()
		if r.Message != "" {
			found.Message += fmt.Sprintf(" (its author says: %s)", r.Message)
		}
		found.Remedy = "install what is missing and remove what is excluded, packages with BundleDeployments in this namespace" + f.offered(r) + ", or " + orWarn
		if f.KubeVersion == "" && r.asksVersion() {
			found.Remedy = "as the ServiceAccount may not ask for the cluster's version, " + grantVersion + "; then " + found.Remedy
		}
	}
	return found
}
