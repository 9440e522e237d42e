// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"bytes"
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

type guardLabel struct{ Name, value string }

func (l guardLabel) String() string { return l.Name + "=" + l.value }

func (l guardLabel) On(object metav1.Object) bool { return object.GetLabels()[l.Name] == l.value }

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
		if label.On(object) {
			guards = append(guards, Guard{guardLabel: label, Ours: managesLabel(object, manager, label.Name)})
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

// PodSecurity are these labels of an object, sorted.
func PodSecurity(object metav1.Object) []string {
	var found []string
	for label := range object.GetLabels() {
		if strings.HasPrefix(label, PodSecurityPrefix) {
			found = append(found, label)
		}
	}
	slices.Sort(found)
	return found
}
