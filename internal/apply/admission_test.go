// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/preflight"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// here selects the world's namespace.
func (w *world) here() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.Namespace}}
}

// webhookDown registers a webhook for ConfigMaps without a running server.
func (w *world) webhookDown() {
	w.T.Helper()
	url, fail, none, seconds := "https://127.0.0.1:1/validate", admissionv1.Fail, admissionv1.SideEffectClassNone, int32(1)
	hooks := w.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	configuration := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "down.example.org", FailurePolicy: &fail, SideEffects: &none, TimeoutSeconds: &seconds,
			AdmissionReviewVersions: []string{"v1"}, NamespaceSelector: w.here(),
			ClientConfig: admissionv1.WebhookClientConfig{URL: &url},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{"*"},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
	if _, err := hooks.Create(w.T.Context(), configuration, metav1.CreateOptions{}); err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { _ = hooks.Delete(context.Background(), w.Namespace, metav1.DeleteOptions{}) })
	probe := w.Objects(`{apiVersion: v1, kind: ConfigMap, metadata: {name: probe}}`)[0]
	workspace.Eventually(w.T, "the webhook is asked", func() error {
		_, err := w.Dynamic.Resource(configMaps).Namespace(w.Namespace).Create(w.T.Context(), probe, metav1.CreateOptions{DryRun: []string{"All"}})
		if err == nil {
			return fmtError("not yet")
		}
		return nil
	})
}

// While a webhook is down each object that it guards is reported, other objects
// are applied, a dry run does not treat the outage as a refusal, and the
// failure counts as temporary.
func TestF19WebhookDown(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.webhookDown()
	result := w.Apply(application)
	errs := result.Errors()
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "ConfigMap "+w.Namespace+"/settings: ") ||
		!strings.Contains(errs[0].Error(), "down.example.org") || !errs[0].Transient() {
		t.Fatalf("got %v", errs)
	}
	if result.Stage != "foundations" || result.Count(apply.Created) != 3 {
		t.Errorf("stage %q, %v", result.Stage, workspace.Kinds(result))
	}
	check, err := dryrun.Run(t.Context(), w.Client, w.Plan(w.Objects(application)), dryrun.Options{})
	if err != nil || len(check.Failed) > 0 || len(check.Unknown) == 0 {
		t.Errorf("got %+v, %v: want the ConfigMap unknown", check, err)
	}
	_ = w.Admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), w.Namespace, metav1.DeleteOptions{})
	workspace.Eventually(t, "recovery", func() error {
		if result := w.Apply(application); !result.Complete() {
			return result.Errors()[0]
		}
		return nil
	})
}

// A policy that denies deletion keeps the object in the inventory, and its
// message is reported with the object.
func TestF6DeniedByPolicy(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.MustApply(workspace.TwoMaps)
	policies := w.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	bindings := w.Admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	meta := metav1.ObjectMeta{Name: w.Namespace}
	_, err := policies.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{"DELETE"},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: "false", Message: "kept for the auditors"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = bindings.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: w.Namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		MatchResources: &admissionv1.MatchResources{NamespaceSelector: w.here()},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	drop := func() {
		_ = bindings.Delete(context.Background(), w.Namespace, metav1.DeleteOptions{})
		_ = policies.Delete(context.Background(), w.Namespace, metav1.DeleteOptions{})
	}
	t.Cleanup(drop)
	workspace.Eventually(t, "the policy denies", func() error {
		err := w.Admin.CoreV1().ConfigMaps(w.Namespace).Delete(t.Context(), "two", metav1.DeleteOptions{DryRun: []string{"All"}})
		if err == nil {
			return fmtError("not yet")
		}
		return nil
	})
	for range 3 {
		pruned := w.prune(oneMap)
		if len(pruned.Denied) != 1 || !strings.Contains(pruned.Denied[0].Error(), "ConfigMap "+w.Namespace+"/two: ") ||
			!strings.Contains(pruned.Denied[0].Error(), "kept for the auditors") || w.Inventory.Len() != 2 {
			t.Fatalf("got %+v with %d in the inventory", pruned, w.Inventory.Len())
		}
	}
	drop()
	workspace.Eventually(t, "pruned", func() error {
		if pruned := w.prune(oneMap); !pruned.Complete() {
			return pruned.Denied[0]
		}
		return nil
	})
	if w.Inventory.Len() != 1 {
		t.Errorf("%d in the inventory", w.Inventory.Len())
	}
}

// Changes that a mutating policy makes to applied objects are neither drift nor
// conflicts with another field manager.
func TestMutatedByAdmission(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	policies := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"}
	bindings := policies.GroupVersion().WithResource("mutatingadmissionpolicybindings")
	for resource, manifest := range map[schema.GroupVersionResource]string{
		policies: `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: NS}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: Object.metadata.labels{tier: "policy"}}}'}
`,
		bindings: `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: NS}
spec: {policyName: NS, matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}}}
`,
	} {
		object := w.Objects(manifest)[0]
		if _, err := w.Dynamic.Resource(resource).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			if !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			t.Skipf("the API server has no mutating policies: %v", err)
		}
		t.Cleanup(func() {
			_ = w.Dynamic.Resource(resource).Delete(context.Background(), w.Namespace, metav1.DeleteOptions{})
		})
	}
	probe := w.Objects(`{apiVersion: v1, kind: ConfigMap, metadata: {name: probe}}`)[0]
	workspace.Eventually(t, "the policy mutates", func() error {
		got, err := w.Dynamic.Resource(configMaps).Namespace(w.Namespace).Create(t.Context(), probe.DeepCopy(), metav1.CreateOptions{DryRun: []string{"All"}})
		if err != nil || got.GetLabels()["tier"] != "policy" {
			return fmtError("not yet")
		}
		return nil
	})
	w.MustApply(workspace.TwoMaps)
	if p := w.Plan(w.Objects(workspace.TwoMaps)); !p.Quiet() {
		t.Errorf("right after the install: %s", p.Summary())
	}
	// The policy added a label to the second map; the next revision sets it differently.
	next := strings.NewReplacer("tier: a", "tier: b", "size: big", "size: small", "{name: two}", "{name: two, labels: {tier: c}}").Replace(workspace.TwoMaps)
	w.MustApply(next)
	if p := w.Plan(w.Objects(next)); !p.Quiet() || p.Count(plan.Unchanged) != 2 {
		t.Errorf("after an upgrade: %s", p.Summary())
	}
	if w.data("one")["size"] != "small" {
		t.Error("the upgrade was not applied")
	}
}

// An account that does not exist is distinguished from one that does, though the API
// server impersonates both.
func TestT2AccountThatDoesNotExist(t *testing.T) {
	w := newWorld(t)
	for name, want := range map[string]bool{"installer": true, "left-behind": false} {
		got, err := w.Pool.AccountExists(t.Context(), tenant.Identity{Namespace: w.Namespace, ServiceAccount: name})
		if err != nil || got != want {
			t.Errorf("%s: got %t, %v", name, got, err)
		}
	}
	target, err := w.Pool.Target(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	system, err := w.Admin.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	if err != nil || target != string(system.UID) {
		t.Errorf("target %q, %v", target, err)
	}
}

// Over the whole life of a deployment every request but discovery is the account's.
func TestT7WholeLifeAsTheAccount(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	w.GrantCluster("installer", definers)
	config := w.ControlPlane.RESTConfig()
	config.UserAgent = "pool-of-" + w.Namespace
	w.Client = w.clientOver(config)
	mark := w.AuditMark()
	bundle := w.widgets() + "\n---\n" + strings.ReplaceAll(application, "name: settings", "name: colours")
	w.reconcile(bundle)
	w.reconcile(strings.ReplaceAll(bundle, "colour: blue", "colour: red"))
	p := w.Plan(w.Objects(bundle))
	if _, err := preflight.Check(t.Context(), w.Client, p); err != nil {
		t.Fatal(err)
	}
	if _, err := dryrun.Run(t.Context(), w.Client, p, dryrun.Options{}); err != nil {
		t.Fatal(err)
	}
	w.healthy(p.Objects())
	w.removeAll()
	events, err := w.ControlPlane.Audit(mark)
	if err != nil {
		t.Fatal(err)
	}
	mine := 0
	for _, event := range events {
		if event.UserAgent != config.UserAgent {
			continue
		}
		mine++
		switch {
		case event.ImpersonatedUser == w.Client.Identity().Username():
		case event.Resource == "" && event.Verb == "get": // discovery
		default:
			t.Errorf("not as the account: %s", event)
		}
	}
	if mine < 30 {
		t.Errorf("only %d requests are in the audit log: the test sees too little", mine)
	}
}
