// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

func conversionNeedsAllNamespaces(b *bundle.Bundle) []manifest.Problem {
	m := b.SupportedModes()
	if m == (bundle.Modes{All: true}) {
		return nil
	}
	var problems []manifest.Problem
	for _, w := range b.ConversionWebhooks() {
		problems = append(problems, b.Problem("V6", "support AllNamespaces alone, or drop the webhook",
			"the conversion webhook %q serves the whole cluster, so the bundle must support the install mode AllNamespaces and no other (it supports: %s)", w.GenerateName, m))
	}
	return problems
}

func webhookDeployments(b *bundle.Bundle) []manifest.Problem {
	known := map[string]bool{}
	for _, d := range b.Deployments() {
		known[d.Name] = true
	}
	var problems []manifest.Problem
	for _, w := range b.Webhooks() {
		if !known[w.DeploymentName] {
			problems = append(problems, b.Problem("V7", "correct its deploymentName",
				"the %s %q is served by the deployment %q, which the bundle does not have", w.Type, w.GenerateName, w.DeploymentName))
		}
	}
	return problems
}

func uniqueWebhooks(b *bundle.Bundle) []manifest.Problem {
	var names []string
	for _, w := range b.Webhooks() {
		names = append(names, fmt.Sprintf("two webhooks of type %s are named %q", w.Type, w.GenerateName))
	}
	var problems []manifest.Problem
	for _, message := range repeated(names) {
		problems = append(problems, b.Problem("V8", "rename one", "%s", message))
	}
	return problems
}

func webhookNames(b *bundle.Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, w := range b.Webhooks() {
		if messages := validation.IsDNS1123Subdomain(w.GenerateName); len(messages) > 0 {
			problems = append(problems, b.Problem("V9", "correct its generateName",
				"the name %q of a %s is not valid: %s", w.GenerateName, w.Type, strings.Join(messages, ", ")))
		}
	}
	return problems
}

func oneConversionWebhook(b *bundle.Bundle) []manifest.Problem {
	converters := map[string][]string{}
	var crds []string
	for _, w := range b.ConversionWebhooks() {
		for _, crd := range slices.Compact(slices.Sorted(slices.Values(w.ConversionCRDs))) {
			converters[crd] = append(converters[crd], w.GenerateName)
			crds = append(crds, crd)
		}
	}
	var problems []manifest.Problem
	for _, crd := range repeated(crds) {
		slices.Sort(converters[crd])
		problems = append(problems, b.Problem("V10", "keep one of them",
			"the conversion webhooks %s all convert %q", strings.Join(converters[crd], ", "), crd))
	}
	return problems
}

func conversionOfOwned(b *bundle.Bundle) []manifest.Problem {
	owned := b.OwnedCRDs()
	var problems []manifest.Problem
	for _, w := range b.ConversionWebhooks() {
		for _, crd := range w.ConversionCRDs {
			if _, found := slices.BinarySearch(owned, crd); !found {
				problems = append(problems, b.Problem("V11", "list it in spec.customresourcedefinitions.owned, or drop it from conversionCRDs",
					"the conversion webhook %q converts %q, which the bundle does not own", w.GenerateName, crd))
			}
		}
	}
	return problems
}

func noPreservedFields(b *bundle.Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, w := range b.ConversionWebhooks() {
		for _, name := range w.ConversionCRDs {
			crd, ok := b.CRD(name)
			if !ok {
				continue
			}
			if preserved, _, _ := unstructured.NestedBool(crd.Object.Object, "spec", "preserveUnknownFields"); preserved {
				problems = append(problems, crd.Problem("V14",
					fmt.Sprintf("spec.preserveUnknownFields is true, so the API server would not call the conversion webhook %q", w.GenerateName), "set it to false"))
			}
		}
	}
	return problems
}

// forbiddenGroups may not be the subject of an admission webhook: it could keep the cluster, or those who would remove
// it, from working.
var forbiddenGroups = []string{"*", "olm.operatorframework.io", "satchel.dev"}

func forbiddenRules(b *bundle.Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, w := range b.Webhooks(v1alpha1.ValidatingAdmissionWebhook, v1alpha1.MutatingAdmissionWebhook) {
		for _, rule := range w.Rules {
			for _, what := range forbidden(rule.APIGroups, rule.Resources) {
				problems = append(problems, b.Problem("V12", "narrow its rules", "the webhook %q must not intercept %s", w.GenerateName, what))
			}
		}
	}
	return problems
}

func forbidden(groups, resources []string) []string {
	var out []string
	for _, group := range groups {
		if slices.Contains(forbiddenGroups, group) {
			out = append(out, fmt.Sprintf("the API group %q", group))
		}
		if group != "admissionregistration.k8s.io" {
			continue
		}
		for _, resource := range resources {
			if interceptsAdmission(resource) {
				out = append(out, fmt.Sprintf("the resource %q of the API group %q", resource, group))
			}
		}
	}
	return out
}

// interceptsAdmission says whether a pattern of resources covers webhook configurations, subresources included.
func interceptsAdmission(pattern string) bool {
	resource, _, _ := strings.Cut(strings.ToLower(pattern), "/")
	switch resource {
	case "*", "validatingwebhookconfiguration", "validatingwebhookconfigurations", "mutatingwebhookconfiguration", "mutatingwebhookconfigurations":
		return true
	}
	return false
}

func webhookPorts(b *bundle.Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, w := range b.Webhooks() {
		if w.ContainerPort < 0 || w.ContainerPort > 65535 {
			problems = append(problems, b.Problem("W2", "give a port from 1 to 65535, or none for 443", "the containerPort of the webhook %q is out of range", w.GenerateName))
		}
	}
	return problems
}

func webhookTypes(b *bundle.Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, w := range b.Webhooks() {
		switch w.Type {
		case v1alpha1.ValidatingAdmissionWebhook, v1alpha1.MutatingAdmissionWebhook, v1alpha1.ConversionWebhook:
		default:
			problems = append(problems, b.Problem("W3", "use ValidatingAdmissionWebhook, MutatingAdmissionWebhook or ConversionWebhook",
				"the type %q of the webhook %q does not exist", w.Type, w.GenerateName))
		}
	}
	return problems
}
