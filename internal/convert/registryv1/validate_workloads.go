// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// deploymentContainers refuses what OLM passes on and every API server refuses: Pods without containers.
func deploymentContainers(b *Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, d := range b.deployments() {
		if len(d.Spec.Template.Spec.Containers) == 0 {
			problems = append(problems, b.problem("D1", "add the one that runs the operator", "the deployment %q has no containers", d.Name))
		}
	}
	return problems
}

// accountNames are checked where they are written: a ServiceAccount is made of each.
func accountNames(b *Bundle) []manifest.Problem {
	names := slices.Sorted(slices.Values(b.accounts()))
	var problems []manifest.Problem
	for _, name := range slices.Compact(names) {
		if messages := validation.IsDNS1123Subdomain(name); len(messages) > 0 {
			problems = append(problems, b.problem("S1", "rename it", "the name of the service account %q is not valid: %s", name, strings.Join(messages, ", ")))
		}
	}
	return problems
}
