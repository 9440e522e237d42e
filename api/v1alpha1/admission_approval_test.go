// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// aPlan is a digest.
var aPlan = "sha256:" + strings.Repeat("0a", 32)

// Which plans wait, and what may be decided about them.
func TestApprovalAdmission(t *testing.T) {
	checkAdmission(t, "BundleDeployment", map[string]admitted{
		"mode":           {reason: "one of three", spec: aDeployment + "\napproval: {mode: OnEscalation}"},
		"no mode":        {reason: "that is Automatic", spec: aDeployment + "\napproval: {}"},
		"another mode":   {reason: "only what is written", spec: aDeployment + "\napproval: {mode: Never}", want: `spec.approval.mode: Unsupported value: "Never": supported values: "Automatic", "Manual", "OnEscalation"`},
		"mode, misspelt": {reason: "what is misspelt would switch approval off", spec: aDeployment + "\napproval: {mode: manual}", want: `spec.approval.mode: Unsupported value: "manual": supported values: "Automatic", "Manual", "OnEscalation"`},
	})
	const fromThePlan = ": must be the digest of a plan, sha256: and 64 hexadecimal digits, as status.plan.digest of the BundleDeployment, or status.waves of the BundleRollout, shows it"
	loud := "sha256:" + strings.Repeat("0A", 32)
	checkAdmission(t, "BundleApproval", map[string]admitted{
		"all fields": {reason: "nothing contradicts", spec: "deployment: app\nplan: " + aPlan + "\ndecision: Deny\nreason: because\nexpirationTime: 2030-01-31T18:00:00Z"},
		"short":      {reason: "a digest is not cut", spec: "deployment: app\nplan: sha256:0a0a\ndecision: Approve", want: `spec.plan: Invalid value: "sha256:0a0a"` + fromThePlan},
		"upper case": {reason: "there is one way to write a digest", spec: "deployment: app\nplan: " + loud + "\ndecision: Approve", want: `spec.plan: Invalid value: "` + loud + `"` + fromThePlan},
		"no plan":    {reason: "whatever comes is not approved", spec: "deployment: app\ndecision: Approve", want: "spec.plan: Required value"},
		"no name":    {reason: "it is about a deployment or a rollout", spec: "plan: " + aPlan + "\ndecision: Approve", want: "spec: Invalid value: exactly one of the fields in [deployment rollout] must be set"},
		"of a wave":  {reason: "with who decided", spec: "rollout: app\nplan: " + aPlan + "\ndecision: Approve\napprover: ann"},
		"of both":    {reason: "a plan is of one object", spec: "deployment: app\nrollout: app\nplan: " + aPlan + "\ndecision: Approve", want: "spec: Invalid value: exactly one of the fields in [deployment rollout] must be set"},
		"long name":  {reason: "no rollout has it", spec: "rollout: " + strings.Repeat("a", 41) + "\nplan: " + aPlan + "\ndecision: Approve", want: "spec.rollout: Too long: may not be more than 40 bytes"},
		"no word":    {reason: "what was decided is said", spec: "deployment: app\nplan: " + aPlan, want: "spec.decision: Required value"},
		"maybe":      {reason: "only what is written", spec: "deployment: app\nplan: " + aPlan + "\ndecision: Maybe", want: `spec.decision: Unsupported value: "Maybe": supported values: "Approve", "Deny"`},
		"an essay":   {reason: "it is shown in a condition", spec: "deployment: app\nplan: " + aPlan + "\ndecision: Approve\nreason: " + strings.Repeat("x", 1025), want: "spec.reason: Too long: may not be more than 1024 bytes"},
		"some day":   {reason: "a time is a time", spec: "deployment: app\nplan: " + aPlan + "\ndecision: Approve\nexpirationTime: tomorrow", want: `spec.expirationTime: Invalid value: "tomorrow": spec.expirationTime in body must be of type date-time: "tomorrow"`},
	})
}

// A decision is immutable: a denial cannot become an approval, nor an approval that of another plan.
func TestApprovalIsImmutable(t *testing.T) {
	a := newAdmission(t)
	stored, err := a.create(object(t, "BundleApproval", "decided", "deployment: app\nplan: "+aPlan+"\ndecision: Deny"))
	if err != nil {
		t.Fatal(err)
	}
	for field, value := range map[string]string{"deployment": "other", "plan": "sha256:" + strings.Repeat("0b", 32), "decision": "Approve", "reason": "now", "approver": "ann", "rollout": "other", "expirationTime": "2030-01-31T18:00:00Z"} {
		changed := stored.DeepCopy()
		if err := unstructured.SetNestedField(changed.Object, value, "spec", field); err != nil {
			t.Fatal(err)
		}
		if err := a.update(changed); err == nil || !strings.Contains(err.Error(), "a decision cannot be changed: delete this object, and create another one") {
			t.Errorf("%s: %v, want it refused", field, err)
		}
	}
	stored.SetLabels(map[string]string{"a": "b"})
	if err := a.update(stored); err != nil {
		t.Errorf("labels: %v", err)
	}
}
