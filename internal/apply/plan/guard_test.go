// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
)

// guardLabels are the labels that no bundle removes.
var guardLabels = []string{"satchel.dev/approval", "satchel.dev/signatures"}

// labelled is a live object with such a label, which a manager applied.
func labelled(label, value, manager string) *ownership.Live {
	object := &metav1.ObjectMeta{UID: "live", Labels: map[string]string{label: value}}
	object.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{"f:` + label + `":{}}}}`)},
	}, {
		Manager: owner.Manager(), Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{"f:app":{}}}}`)},
	}}
	live := ownership.LiveOf(object, owner)
	return &live
}

// No bundle approves anything, or removes a label that requires approval (T24) or signatures (T29), whatever else is allowed.
func TestT24WhatNoBundleMayDo(t *testing.T) {
	approval := inventory.ID{Group: "satchel.dev", Kind: "BundleApproval", Namespace: "shop", Name: "yes"}
	namespace := inventory.ID{Kind: "Namespace", Name: "shop"}
	for _, label := range guardLabels {
		by := func(value, manager string) *ownership.Live { return labelled(label, value, manager) }
		for name, tc := range map[string]struct {
			reason  string
			id      inventory.ID
			label   string // of the object in the bundle
			live    *ownership.Live
			refused bool
		}{
			"approval":           {"it would approve itself", approval, "", nil, true},
			"existing approval":  {"or change a denial", approval, "", &ownership.Live{UID: "one"}, true},
			"label set":          {"more approval is an escalation, not forbidden", namespace, "required", nil, false},
			"label kept":         {"the same as it is", namespace, "required", by("required", "kubectl"), false},
			"label of others":    {"the bundle says nothing of it, and applying leaves it", namespace, "", by("required", "kubectl"), false},
			"own label left out": {"applying would remove it", namespace, "", by("required", owner.Manager()), true},
			"another value":      {"nothing but required requires anything", namespace, "none", by("required", "kubectl"), true},
			"not required":       {"there is nothing to remove", namespace, "none", by("optional", owner.Manager()), false},
			"another kind":       {"the label means something on Namespaces only", one, "none", by("required", owner.Manager()), false},
		} {
			t.Run(label+"/"+name, func(t *testing.T) {
				object := desired(tc.id, "")
				object.Desired = &unstructured.Unstructured{Object: map[string]any{}}
				if tc.label != "" {
					object.Desired.SetLabels(map[string]string{label: tc.label})
				}
				for _, hook := range []bool{false, true} {
					in := plan.Input{
						Owner: owner, Rules: plan.Rules{Protection: ownership.Prevent}, Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{}}, Desired: []plan.Object{object},
						Previous: inventory.New("cluster", confirmed(tc.id)),
					}
					if tc.live != nil {
						in.Live[tc.id] = *tc.live
					}
					refused := tc.refused
					if hook {
						in.Desired, in.Hooks = nil, []plan.HookObject{{Object: object}}
						refused = refused || tc.live != nil && tc.live.GuardedNamespace(tc.id) != "" // hooks are deleted
					}
					p := plan.Make(in)
					if got := len(p.Violations) == 1 && p.Violations[0].Rule == violation.Guarded; got != refused || !got && len(p.Violations) > 0 {
						t.Errorf("%s (as a hook: %v): violations %v", tc.reason, hook, p.Violations)
					}
				}
			})
		}
	}
}

// A Namespace that requires approval or signatures is not deleted, whatever the spec says about pruning.
func TestT24LabelledNamespacesAreKept(t *testing.T) {
	namespace := inventory.ID{Kind: "Namespace", Name: "shop"}
	for _, label := range guardLabels {
		for value, want := range map[string]plan.How{"required": plan.Release, "none": plan.DeleteEmpty} {
			in := plan.Input{
				Owner: owner, Observed: plan.Observed{Live: map[inventory.ID]ownership.Live{namespace: *labelled(label, value, owner.Manager())}},
				Previous: inventory.New("cluster", confirmed(namespace)),
			}
			stages := plan.Removal(in)
			if len(stages) != 1 || stages[0].Deletions[0].How != want {
				t.Errorf("%s=%s: %+v, want %s", label, value, stages, want)
			}
		}
	}
}

// Labels that decide which Pods are admitted need consent, in the bundle's objects and in its hooks; labels that were
// applied before are kept.
func TestT28PodSecurityLabelsTakeConsent(t *testing.T) {
	namespace := inventory.ID{Kind: "Namespace", Name: "shop"}
	for name, tc := range map[string]struct {
		id              inventory.ID
		consent, keeps  bool
		label           string
		refused, asHook bool
	}{
		"without consent":  {id: namespace, label: "pod-security.kubernetes.io/enforce", refused: true},
		"as a hook":        {id: namespace, label: "pod-security.kubernetes.io/enforce", refused: true, asHook: true},
		"with consent":     {id: namespace, label: "pod-security.kubernetes.io/enforce", consent: true},
		"as it is applied": {id: namespace, label: "pod-security.kubernetes.io/enforce", keeps: true},
		"another label":    {id: namespace, label: "example.org/pod-security"},
		"another kind":     {id: one, label: "pod-security.kubernetes.io/enforce"},
	} {
		object := desired(tc.id, "")
		object.Desired = &unstructured.Unstructured{Object: map[string]any{}}
		object.Desired.SetLabels(map[string]string{tc.label: "privileged"})
		in := plan.Input{Owner: owner, Desired: []plan.Object{object}, Rules: plan.Rules{PodSecurity: tc.consent}, Keeping: tc.keeps}
		if tc.asHook {
			in.Desired, in.Hooks = nil, []plan.HookObject{{Object: object}}
		}
		p := plan.Make(in)
		if got := len(p.Violations) == 1 && p.Violations[0].Rule == violation.Guarded; got != tc.refused || !got && len(p.Violations) > 0 {
			t.Errorf("%s: %v", name, p.Violations)
		}
	}
}
