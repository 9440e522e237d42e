// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

func (b *Bundle) conversionWebhooks() []v1alpha1.WebhookDescription {
	return b.webhooks(v1alpha1.ConversionWebhook)
}

func conversionNeedsAllNamespaces(b *Bundle) []manifest.Problem {
	m := supportedModes(b)
	if m == (modes{all: true}) {
		return nil
	}
	var problems []manifest.Problem
	for _, w := range b.conversionWebhooks() {
		problems = append(problems, b.problem("V6", "support AllNamespaces alone, or drop the webhook",
			"the conversion webhook %q serves the whole cluster, so the bundle must support the install mode AllNamespaces and no other (it supports: %s)", w.GenerateName, m))
	}
	return problems
}

func webhookDeployments(b *Bundle) []manifest.Problem {
	known := map[string]bool{}
	for _, d := range b.deployments() {
		known[d.Name] = true
	}
	var problems []manifest.Problem
	for _, w := range b.webhooks() {
		if !known[w.DeploymentName] {
			problems = append(problems, b.problem("V7", "correct its deploymentName",
				"the %s %q is served by the deployment %q, which the bundle does not have", w.Type, w.GenerateName, w.DeploymentName))
		}
	}
	return problems
}

func uniqueWebhooks(b *Bundle) []manifest.Problem {
	var names []string
	for _, w := range b.webhooks() {
		names = append(names, fmt.Sprintf("two webhooks of type %s are named %q", w.Type, w.GenerateName))
	}
	var problems []manifest.Problem
	for _, message := range repeated(names) {
		problems = append(problems, b.problem("V8", "rename one", "%s", message))
	}
	return problems
}

func webhookNames(b *Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, w := range b.webhooks() {
		if messages := validation.IsDNS1123Subdomain(w.GenerateName); len(messages) > 0 {
			problems = append(problems, b.problem("V9", "correct its generateName",
				"the name %q of a %s is not valid: %s", w.GenerateName, w.Type, strings.Join(messages, ", ")))
		}
	}
	return problems
}

func oneConversionWebhook(b *Bundle) []manifest.Problem {
	converters := map[string][]string{}
	var crds []string
	for _, w := range b.conversionWebhooks() {
		for _, crd := range slices.Compact(slices.Sorted(slices.Values(w.ConversionCRDs))) {
			converters[crd] = append(converters[crd], w.GenerateName)
			crds = append(crds, crd)
		}
	}
	var problems []manifest.Problem
	for _, crd := range repeated(crds) {
		slices.Sort(converters[crd])
		problems = append(problems, b.problem("V10", "keep one of them",
			"the conversion webhooks %s all convert %q", strings.Join(converters[crd], ", "), crd))
	}
	return problems
}

func conversionOfOwned(b *Bundle) []manifest.Problem {
	owned := b.ownedCRDs()
	var problems []manifest.Problem
	for _, w := range b.conversionWebhooks() {
		for _, crd := range w.ConversionCRDs {
			if _, found := slices.BinarySearch(owned, crd); !found {
				problems = append(problems, b.problem("V11", "list it in spec.customresourcedefinitions.owned, or drop it from conversionCRDs",
					"the conversion webhook %q converts %q, which the bundle does not own", w.GenerateName, crd))
			}
		}
	}
	return problems
}

func noPreservedFields(b *Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, w := range b.conversionWebhooks() {
		for _, name := range w.ConversionCRDs {
			crd, ok := b.crd(name)
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

func forbiddenRules(b *Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, w := range b.webhooks(v1alpha1.ValidatingAdmissionWebhook, v1alpha1.MutatingAdmissionWebhook) {
		for _, rule := range w.Rules {
			for _, what := range forbidden(rule.APIGroups, rule.Resources) {
				problems = append(problems, b.problem("V12", "narrow its rules", "the webhook %q must not intercept %s", w.GenerateName, what))
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

func webhookPorts(b *Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, w := range b.webhooks() {
		if w.ContainerPort < 0 || w.ContainerPort > 65535 {
			problems = append(problems, b.problem("W2", "give a port from 1 to 65535, or none for 443", "the containerPort of the webhook %q is out of range", w.GenerateName))
		}
	}
	return problems
}

func webhookTypes(b *Bundle) []manifest.Problem {
	var problems []manifest.Problem
	for _, w := range b.webhooks() {
		switch w.Type {
		case v1alpha1.ValidatingAdmissionWebhook, v1alpha1.MutatingAdmissionWebhook, v1alpha1.ConversionWebhook:
		default:
			problems = append(problems, b.problem("W3", "use ValidatingAdmissionWebhook, MutatingAdmissionWebhook or ConversionWebhook",
				"the type %q of the webhook %q does not exist", w.Type, w.GenerateName))
		}
	}
	return problems
}
