// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/satchel-dev/satchel/internal/view"
)

// WebhookSummary is a webhook that the API server will call.
type WebhookSummary struct {
	Type          string   `json:"type"` // Validating, Mutating, Conversion
	Name          string   `json:"name"`
	ServedBy      string   `json:"servedBy"` // "Deployment x" or "Service ns/x"
	FailurePolicy string   `json:"failurePolicy,omitempty"`
	Rules         []string `json:"rules"`            // what is intercepted, or converted
	Danger        string   `json:"danger,omitempty"` // why it is dangerous
}

// definedWebhooks are those of a ClusterServiceVersion.
func definedWebhooks(definitions []v1alpha1.WebhookDescription) []WebhookSummary {
	found := []WebhookSummary{}
	for _, w := range definitions {
		s := WebhookSummary{
			Type: strings.TrimSuffix(strings.TrimSuffix(string(w.Type), "Webhook"), "Admission"), Name: w.GenerateName,
			ServedBy: "Deployment " + w.DeploymentName, Rules: []string{},
		}
		if w.Type == v1alpha1.ConversionWebhook {
			s.Rules = append(s.Rules, w.ConversionCRDs...)
		} else {
			s.FailurePolicy, s.Danger = failurePolicy(w.FailurePolicy), view.DangerOfWebhook(w.Rules)
			s.Rules = append(s.Rules, ruleTexts(w.Rules)...)
		}
		found = append(found, s)
	}
	return dangerousFirst(found)
}

// dangerousFirst keeps the order otherwise.
func dangerousFirst(webhooks []WebhookSummary) []WebhookSummary {
	slices.SortStableFunc(webhooks, func(a, b WebhookSummary) int { return CompareBool(a.Danger != "", b.Danger != "") })
	return webhooks
}

// failurePolicy is what happens when the webhook does not answer; the API server's default is to refuse.
func failurePolicy(policy *admission.FailurePolicyType) string {
	if policy == nil {
		return string(admission.Fail)
	}
	return string(*policy)
}

// admissionWebhooks are those of webhook configurations.
func admissionWebhooks(objects []*unstructured.Unstructured) []WebhookSummary {
	found := []WebhookSummary{}
	for _, o := range objects {
		kind, isAdmission := strings.CutSuffix(o.GetKind(), "WebhookConfiguration")
		if !isAdmission {
			continue
		}
		// Both kinds have the fields that are shown in common.
		var c admission.ValidatingWebhookConfiguration
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &c) != nil {
			continue
		}
		for _, w := range c.Webhooks {
			s := WebhookSummary{Type: kind, Name: w.Name, FailurePolicy: failurePolicy(w.FailurePolicy), Danger: view.DangerOfWebhook(w.Rules),
				Rules: append([]string{}, ruleTexts(w.Rules)...)}
			if service := w.ClientConfig.Service; service != nil {
				s.ServedBy = "Service " + service.Namespace + "/" + service.Name
			} else if w.ClientConfig.URL != nil {
				s.ServedBy = *w.ClientConfig.URL
			}
			found = append(found, s)
		}
	}
	return dangerousFirst(found)
}

// ruleTexts says what is intercepted: "CREATE, UPDATE of gadgets in gadgets.example.org".
func ruleTexts(rules []admission.RuleWithOperations) []string {
	texts := make([]string, 0, len(rules))
	for _, r := range rules {
		operations := make([]string, 0, len(r.Operations))
		for _, o := range r.Operations {
			operations = append(operations, string(o))
		}
		texts = append(texts, view.WordList(operations)+" of "+ResourcesText(r.APIGroups, r.Resources))
	}
	return texts
}
