// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// generateValidatingWebhooks makes one configuration a webhook, named as the webhook is (W3).
func generateValidatingWebhooks(in *input) ([]manifest.Manifest, []manifest.Problem) {
	return in.configurations(v1alpha1.ValidatingAdmissionWebhook, "ValidatingWebhookConfiguration", func(w v1alpha1.WebhookDescription) any {
		return &admissionv1.ValidatingWebhook{
			Name: w.GenerateName, NamespaceSelector: in.watched(),
			Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy, ObjectSelector: w.ObjectSelector,
			SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions,
		}
	})
}

// generateMutatingWebhooks does the same for those that change objects.
func generateMutatingWebhooks(in *input) ([]manifest.Manifest, []manifest.Problem) {
	return in.configurations(v1alpha1.MutatingAdmissionWebhook, "MutatingWebhookConfiguration", func(w v1alpha1.WebhookDescription) any {
		return &admissionv1.MutatingWebhook{
			Name: w.GenerateName, NamespaceSelector: in.watched(),
			Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy, ObjectSelector: w.ObjectSelector,
			SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions,
			ReinvocationPolicy: w.ReinvocationPolicy,
		}
	})
}

// configurations makes those of one type; hook returns the typed webhook without its client configuration.
func (in *input) configurations(of v1alpha1.WebhookAdmissionType, kind string, hook func(v1alpha1.WebhookDescription) any) ([]manifest.Manifest, []manifest.Problem) {
	var out []manifest.Manifest
	var problems []manifest.Problem
	for _, w := range in.Webhooks(of) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(hook(w))
		if err != nil {
			problems = append(problems, in.Problem("W5", "correct it", "the webhook %q cannot be written as an object", w.GenerateName))
			continue
		}
		content["clientConfig"] = in.clientConfig(w, w.WebhookPath)
		m := in.object("admissionregistration.k8s.io/v1", kind, "", w.GenerateName, map[string]any{"webhooks": []any{content}})
		in.trust(m, w)
		out = append(out, m)
	}
	return out, problems
}

// watched selects the namespaces that the operator watches; nil for all (W6).
func (in *input) watched() *metav1.LabelSelector {
	if in.all() {
		return nil
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: in.targets},
	}}
}
