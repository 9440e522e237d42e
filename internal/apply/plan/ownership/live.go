// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Live is the metadata of an existing object.
type Live struct {
	UID             types.UID
	ResourceVersion string
	Fields, Seen    inventory.Hash
	Owner           inventory.Owner // by its labels; zero when none
	Orphaned        bool
	Deleting        bool
	Finalizers      []string
	// Shared: another deployment, or a client of the scale subresource, holds
	// fields of it, which are not simply taken back.
	Shared     bool
	Managers   []string // field managers other than the owner's, sorted
	Controller string   // "ReplicaSet web-5d" of the controlling owner reference
	Tool       string   // "Helm release shop/web": the tool, by its labels and annotations
	Ending     Ending   // what its annotations say about its deletion
	Phase      int      // in which it was applied
	Guards     []Guard  // labels of a Namespace that no bundle removes
}

// LiveOf reads an object's metadata as the given owner sees it.
func LiveOf(object metav1.Object, owner inventory.Owner) Live {
	manager := owner.Manager()
	_, orphaned := object.GetAnnotations()[inventory.AnnotationOrphaned]
	live := Live{
		UID:             object.GetUID(),
		ResourceVersion: object.GetResourceVersion(),
		Fields:          inventory.HashFields(object.GetManagedFields(), manager),
		Seen:            inventory.HashSeen(object),
		Owner:           inventory.OwnerOf(object.GetLabels()),
		Orphaned:        orphaned,
		Deleting:        object.GetDeletionTimestamp() != nil,
		Finalizers:      object.GetFinalizers(),
		Tool:            toolOf(object),
		Ending:          endingOf(object.GetAnnotations()),
		Phase:           phaseIn(object.GetAnnotations()),
		Guards:          guardsOf(object, manager),
	}
	for _, entry := range object.GetManagedFields() {
		live.Shared = live.Shared || entry.Subresource == "scale" || entry.Manager != manager && inventory.IsManager(entry.Manager)
		if entry.Manager != manager {
			live.Managers = append(live.Managers, entry.Manager)
		}
	}
	slices.Sort(live.Managers)
	live.Managers = slices.Compact(live.Managers)
	if controller := metav1.GetControllerOf(object); controller != nil {
		live.Controller = controller.Kind + " " + controller.Name
	}
	return live
}

// Ours tells whether the object provably belongs to the owner: by its labels, or, without
// labels of any deployment, because the owner's manager applied it.
func (l Live) Ours(owner inventory.Owner) bool {
	if l.Owner.IsZero() {
		return !l.Fields.IsZero()
	}
	return l.Owner == owner
}

// TakenBy returns the other deployment that really applied the object and put its
// labels on it; the zero Owner when there is none.
func (l Live) TakenBy(owner inventory.Owner) inventory.Owner {
	if l.Owner.IsZero() || l.Owner == owner || !slices.Contains(l.Managers, l.Owner.Manager()) {
		return inventory.Owner{}
	}
	return l.Owner
}

// Holder describes the owner of the object, from the best evidence, as the
// given owner sees it.
func (l Live) Holder(owner inventory.Owner) string {
	if !l.Owner.IsZero() && l.Owner != owner {
		return "belongs to " + l.Owner.String()
	}
	for _, manager := range l.Managers {
		if other := inventory.OwnerOfManager(manager); !other.IsZero() {
			return "belongs to " + other.String()
		}
	}
	switch {
	case l.Tool != "":
		return "belongs to " + l.Tool
	case l.Controller != "":
		return "is controlled by " + l.Controller
	case l.Owner == owner:
		return "carries the labels of this deployment, which never applied it"
	case len(l.Managers) > 0:
		return fmt.Sprintf("was written by %s", strings.Join(l.Managers, ", "))
	}
	return "was created by another client"
}

// BeingDeleted says what a terminating object waits for.
func BeingDeleted(live Live) string {
	if len(live.Finalizers) == 0 {
		return "is being deleted"
	}
	return fmt.Sprintf("is being deleted and waits for its finalizers %s", strings.Join(live.Finalizers, ", "))
}
