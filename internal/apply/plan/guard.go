// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// IsApproval tells whether an object is a BundleApproval.
func IsApproval(id inventory.ID) bool {
	return id.Group == v1alpha1.GroupVersion.Group && id.Kind == v1alpha1.BundleApprovalKind
}

// guardLabels are the labels of a Namespace, with their values, that no bundle removes or changes: they require approval
// or signatures of what is installed there.
var guardLabels = []guardLabel{
	{v1alpha1.RequireApprovalLabel, v1alpha1.RequireApproval},
	{v1alpha1.RequireSignaturesLabel, v1alpha1.RequireSignatures},
}

type guardLabel struct{ name, value string }

func (l guardLabel) String() string { return l.name + "=" + l.value }

func (l guardLabel) on(object metav1.Object) bool { return object.GetLabels()[l.name] == l.value }

// Guard is a label of a live Namespace that no bundle removes.
type Guard struct {
	guardLabel
	// Ours: the label is a field of the owner's manager, and is removed when the owner applies the
	// Namespace without it.
	Ours bool
}

// guardsOf reads the labels of an object.
func guardsOf(object metav1.Object, manager string) []Guard {
	var guards []Guard
	for _, label := range guardLabels {
		if label.on(object) {
			guards = append(guards, Guard{guardLabel: label, Ours: managesLabel(object, manager, label.name)})
		}
	}
	return guards
}

// managesLabel tells whether a field manager applied a label.
func managesLabel(object metav1.Object, manager, label string) bool {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == manager && entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:`+label+`"`)) {
			return true
		}
	}
	return false
}

// GuardedNamespace names a label that protects a Namespace from deletion, whatever a bundle says; "" where it has none.
func (l Live) GuardedNamespace(id inventory.ID) string {
	if !IsNamespace(id) || len(l.Guards) == 0 {
		return ""
	}
	return l.Guards[0].String()
}

// PodSecurityPrefix is the prefix of the labels of Namespaces that say which Pods are admitted there.
const PodSecurityPrefix = "pod-security.kubernetes.io/"

// podSecurity are these labels of an object, sorted.
func podSecurity(object metav1.Object) []string {
	var found []string
	for label := range object.GetLabels() {
		if strings.HasPrefix(label, PodSecurityPrefix) {
			found = append(found, label)
		}
	}
	slices.Sort(found)
	return found
}

// guards says why an object must not be in any bundle, whatever the permissions of its account; nil
// when it may. Approvals, and the labels of a Namespace that require approval or signatures, are for users and
// their tools: otherwise a bundle could approve itself.
func (in Input) guards(object Object, claim Claim) *Violation {
	if IsApproval(object.ID) {
		return &Violation{
			Rule: Guarded, Object: object.ID,
			Message: fmt.Sprintf("%s approves or denies a plan, which no bundle may do", object.ID),
			Remedy:  "take it out of the bundle, and create it in another way, such as satchel approve",
		}
	}
	if labels := podSecurity(object.Desired); IsNamespace(object.ID) && !in.PodSecurity && !in.Keeping && len(labels) > 0 {
		return &Violation{
			Rule: Guarded, Object: object.ID,
			Message: fmt.Sprintf("%s has the labels %s, which decide what Pods may do there", object.ID, strings.Join(labels, ", ")),
			Remedy:  "set spec.allowPodSecurityLabels, have each escalation approved by spec.approval.mode OnEscalation, or take the labels out of the bundle",
		}
	}
	if !IsNamespace(object.ID) {
		return nil
	}
	for _, guard := range in.Live[object.ID].Guards {
		_, changes := object.Desired.GetLabels()[guard.name]
		if guard.on(object.Desired) || !changes && !guard.Ours && claim != Adoptable {
			continue
		}
		return &Violation{
			Rule: Guarded, Object: object.ID,
			Message: fmt.Sprintf("%s has the label %s, and the bundle would remove it", object.ID, guard),
			Remedy:  "give it the same label in the bundle, or have an administrator remove the label first",
		}
	}
	return nil
}

// guarded are the violations for hooks with a guard label: hooks are deleted before they run again.
func (in Input) guarded() []Violation {
	var violations []Violation
	for _, hook := range in.Hooks {
		violation, guard := in.guards(hook.Object, Owned), in.Live[hook.ID].GuardedNamespace(hook.ID)
		switch {
		case violation != nil:
			violations = append(violations, *violation)
		case guard != "":
			violations = append(violations, Violation{
				Rule: Guarded, Object: hook.ID,
				Message: fmt.Sprintf("%s has the label %s, and as a hook the bundle would delete it", hook.ID, guard),
				Remedy:  "take the hook out of the bundle, or have an administrator remove the label first",
			})
		}
	}
	return violations
}
