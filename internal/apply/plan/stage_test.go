// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// Kubernetes deletes the Secret for the token of an unknown service account, so the account comes first.
func TestTokenSecretsComeAfterTheirAccounts(t *testing.T) {
	token := desired(inventory.ID{Kind: "Secret", Namespace: "shop", Name: "token"}, "")
	token.Desired.Object["type"] = "kubernetes.io/service-account-token"
	in := plan.Input{Owner: owner, Desired: []plan.Object{
		token, desired(inventory.ID{Kind: "Secret", Namespace: "shop", Name: "plain"}, ""), desired(inventory.ID{Kind: "ServiceAccount", Namespace: "shop", Name: "web"}, ""),
	}}
	stages := plan.Make(in).Stages
	if len(stages) != 2 || len(stages[0].Actions) != 2 || stages[1].Actions[0].Name != "token" {
		t.Errorf("got %v", stages)
	}
}

// Certificates exist before objects trust or mount them, and after their
// namespace; other Secrets keep their stage.
func TestCertificatesComeBeforeWhatTrustsThem(t *testing.T) {
	marked := func(name, role string) plan.Object {
		o := desired(inventory.ID{Kind: "Secret", Namespace: "shop", Name: name}, "")
		o.Desired.SetLabels(map[string]string{plan.LabelCertificate: role})
		return o
	}
	in := plan.Input{Owner: owner, Desired: []plan.Object{
		desired(inventory.ID{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration", Name: "web"}, ""),
		desired(inventory.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.example.org"}, ""),
		desired(inventory.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, ""),
		desired(inventory.ID{Kind: "Secret", Namespace: "shop", Name: "plain"}, ""),
		marked("serving", plan.CertificateServing), marked("ca", plan.CertificateAuthority),
		desired(inventory.ID{Kind: "Namespace", Name: "shop"}, ""),
	}}
	var got [][]string
	for _, stage := range plan.Make(in).Stages {
		words := []string{stage.Name}
		for _, action := range stage.Actions {
			words = append(words, action.Name)
		}
		got = append(got, words)
	}
	want := [][]string{
		{"namespaces", "shop"}, {"certificates", "ca", "serving"}, {"definitions", "widgets.example.org"},
		{"foundations", "plain"}, {"workloads", "web"}, {"admission", "web"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
