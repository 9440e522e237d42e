// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

// deploymentContainers refuses what OLM passes on and every API server refuses: Pods without containers.
func deploymentContainers(b *bundle.Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, d := range b.Deployments() {
		if len(d.Spec.Template.Spec.Containers) == 0 {
			problems = append(problems, b.Problem("D1", "add the one that runs the operator", "the deployment %q has no containers", d.Name))
		}
	}
	return problems
}

// accountNames are checked where they are written: a ServiceAccount is made of each.
func accountNames(b *bundle.Bundle) []manifest.Problem {
	names := slices.Sorted(slices.Values(b.Accounts()))
	var problems []manifest.Problem
	for _, name := range slices.Compact(names) {
		if messages := validation.IsDNS1123Subdomain(name); len(messages) > 0 {
			problems = append(problems, b.Problem("S1", "rename it", "the name of the service account %q is not valid: %s", name, strings.Join(messages, ", ")))
		}
	}
	return problems
}
