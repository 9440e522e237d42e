// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// Many resources take several calls; each continues where the last one ended.
func TestMigrationGoesOn(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Everything...)
	c := newConverter(t)
	c.old(w, 1)
	const many = 1100
	created := parallel.Each(t.Context(), 16, make([]string, many), func(ctx context.Context, _ string) error {
		widget := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": w.widget().GroupVersion().String(), "kind": "Widget", "metadata": map[string]any{"generateName": "more-"},
		}}
		_, err := w.Dynamic.Resource(w.widget()).Namespace(w.Namespace).Create(ctx, widget, metav1.CreateOptions{})
		return err
	})
	if err := errors.Join(created...); err != nil {
		t.Fatal(err)
	}
	removed := w.remove()
	if len(removed.Waiting) != 1 || !strings.Contains(removed.Waiting[0].Reason, "written as v1") || w.data("operator") == nil {
		t.Fatalf("after one call: %+v", removed)
	}
	before := w.Client.Requests()
	w.removeAll()
	if rest := w.Client.Requests() - before; rest > many/2 {
		t.Errorf("%d requests for what was left of %d resources", rest, many)
	}
	w.unharmed(many + 1)
}

func (w *world) patchDefinition(how types.PatchType, patch string) {
	w.T.Helper()
	name := "widgets." + w.widget().Group
	if _, err := w.Dynamic.Resource(definitions).Patch(w.T.Context(), name, how, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.T.Fatal(err)
	}
}

// A webhook that recovers in time costs nothing, however often it was tried.
func TestMigrationOutlivesAnOutage(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Everything...)
	c := newConverter(t)
	c.old(w, 2)
	c.die(w)
	for range 6 {
		w.Ahead += time.Minute
		if removed := w.remove(); len(removed.Waiting) != 1 || !strings.Contains(removed.Waiting[0].Reason, "could not be written") {
			t.Fatalf("got %+v", removed)
		}
	}
	c.revive()
	if notes := strings.Join(w.removeAll(), "; "); !strings.Contains(notes, "stored as v1 now") {
		t.Errorf("notes %q", notes)
	}
	w.kept(2)
}

// Patience ends only without any progress: resources that were written count,
// and are not written again.
func TestMigrationMakesProgress(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Everything...)
	newConverter(t).old(w, 8)
	w.failsFor("w5", "w0")
	first := w.waitsUntil()
	w.Ahead = 6 * time.Minute
	if until := w.waitsUntil(); until != first {
		t.Errorf("without progress it waits until %s, at first until %s", until, first)
	}
	w.failsFor("w7", "w5")
	before := w.Client.Requests()
	if until := w.waitsUntil(); until.Sub(first) < 5*time.Minute {
		t.Errorf("with progress it waits until %s, at first until %s", until, first)
	}
	attempt := w.Client.Requests() - before
	w.failsFor("none", "w7")
	w.removeAll()
	w.kept(8)
	if attempt > 8 {
		t.Errorf("%d requests for three resources", attempt)
	}
}

// failsFor makes an admission webhook fail for one widget, and no more for another.
func (w *world) failsFor(name, other string) {
	w.T.Helper()
	url, fail, none := "https://127.0.0.1:1/validate", admissionv1.Fail, admissionv1.SideEffectClassNone
	hooks := w.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_ = hooks.Delete(w.T.Context(), w.Namespace, metav1.DeleteOptions{})
	w.T.Cleanup(func() { _ = hooks.Delete(context.Background(), w.Namespace, metav1.DeleteOptions{}) })
	_, err := hooks.Create(w.T.Context(), &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "down.example.org", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig:    admissionv1.WebhookClientConfig{URL: &url},
			MatchConditions: []admissionv1.MatchCondition{{Name: "one", Expression: fmt.Sprintf("object.metadata.name == %q", name)}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{w.widget().Group}, APIVersions: []string{"*"}, Resources: []string{"widgets"}},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	workspace.Eventually(w.T, "the webhook fails for "+name, func() error {
		if err := w.tryWrite(other); err != nil {
			return err
		}
		if err := w.tryWrite(name); err == nil {
			return fmtError("not yet")
		}
		return nil
	})
}

// tryWrite tells whether a widget could be written.
func (w *world) tryWrite(name string) error {
	_, err := w.Dynamic.Resource(w.widget()).Namespace(w.Namespace).Patch(w.T.Context(), name, types.MergePatchType, []byte("{}"),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// Refused resources hold an update until a user corrects them. No other resource is
// retried meanwhile.
func TestUpgradeWaitsForWhatIsRefused(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", workspace.Everything...)
	const count = 40
	upgraded := unconverting(newConverter(t).old(w, count))
	w.policyAgainst("w2")
	w.holds(upgraded, "1 of its resources ("+w.Namespace+"/w2) could not be written as v1")
	before := w.Client.Requests()
	w.holds(upgraded, "not this one")
	if requests := w.Client.Requests() - before; requests > count/2 {
		t.Errorf("%d requests to try one resource again", requests)
	}
	w.endPolicy()
	workspace.Eventually(t, "the upgrade", func() error {
		if result := w.Apply(upgraded); !result.Complete() {
			return fmtError(result.Pending)
		}
		return nil
	})
	w.kept(count)
}

// One resource that cannot be written does not block the others: the rest loses
// nothing, and the notes name that one.
func TestMigrationGoesPastWhatIsRefused(t *testing.T) {
	tests := map[string]struct {
		reason string
		rules  func(group string) []rbacv1.PolicyRule
		spoil  func(*world)
		why    string
	}{
		"invalid": {"a policy is against it", func(string) []rbacv1.PolicyRule { return workspace.Everything }, func(w *world) {
			w.policyAgainst("w2")
		}, "not this one"},
		"forbidden": {"the account may write the others only", func(group string) []rbacv1.PolicyRule {
			return []rbacv1.PolicyRule{definers, {APIGroups: []string{group}, Resources: []string{"widgets"}, Verbs: []string{"list"}},
				{APIGroups: []string{group}, Resources: []string{"widgets"}, Verbs: []string{"patch"}, ResourceNames: []string{"w0", "w1"}}}
		}, func(*world) {}, "is forbidden"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, configMapsOnly...)
			w.GrantCluster("installer", tt.rules(w.widget().Group)...)
			c := newConverter(t)
			c.old(w, 3)
			tt.spoil(w)
			notes := strings.Join(w.removeAll(), "; ")
			for _, words := range []string{"1 of its resources (" + w.Namespace + "/w2)", tt.why, "lost when"} {
				if !strings.Contains(notes, words) {
					t.Errorf("%s: notes %q do not say %q", tt.reason, notes, words)
				}
			}
			for _, item := range w.unharmed(3) {
				_, found, _ := unstructured.NestedInt64(item.Object, "spec", "bulk")
				if written := item.GetName() != "w2"; found != written {
					t.Errorf("%s: %v", item.GetName(), item.Object["spec"])
				}
			}
			if stored := w.stored(); len(stored) != 2 {
				t.Errorf("stored versions %v", stored)
			}
		})
	}
}

var configMapsOnly = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}}

// policyAgainst makes the API server refuse to write one widget.
func (w *world) policyAgainst(name string) {
	w.T.Helper()
	ctx, meta := w.T.Context(), metav1.ObjectMeta{Name: w.Namespace}
	policies := w.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	bindings := w.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	w.T.Cleanup(w.endPolicy)
	_, err := policies.Create(ctx, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{"UPDATE"},
			Rule:       admissionv1.Rule{APIGroups: []string{w.widget().Group}, APIVersions: []string{"*"}, Resources: []string{"widgets"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: fmt.Sprintf("object.metadata.name != %q", name), Message: "not this one"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	_, err = bindings.Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: w.Namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}, metav1.CreateOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	workspace.Eventually(w.T, name+" is refused", func() error {
		if err := w.tryWrite(name); err == nil {
			return fmtError("not yet")
		}
		return nil
	})
}

func (w *world) endPolicy() {
	_ = w.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(context.Background(), w.Namespace, metav1.DeleteOptions{})
	_ = w.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(context.Background(), w.Namespace, metav1.DeleteOptions{})
}
