// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
)

// spared are fields that an adoption leaves to their managers: the status and the
// finalizers.
var spared = fieldpath.NewSet(fieldpath.MakePathOrDie("status"), fieldpath.MakePathOrDie("metadata", "finalizers"))

// HandOver moves the managed fields of former owners to a manager, as if it had applied
// them. An orphaned object has one former owner, the manager of orphaned objects; for any
// other object these are all managers that write whole manifests. Subresources stay with
// their managers.
func HandOver(entries []metav1.ManagedFieldsEntry, to string) ([]metav1.ManagedFieldsEntry, error) {
	left := slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool { return applied(entry, inventory.OrphanManager) })
	former := func(entry metav1.ManagedFieldsEntry) bool {
		switch {
		case entry.Subresource != "" || entry.FieldsV1 == nil:
			return false
		case left:
			return applied(entry, inventory.OrphanManager)
		}
		return ownership.IsFormer(entry.Manager) || inventory.IsManager(entry.Manager)
	}
	ours := metav1.ManagedFieldsEntry{Manager: to, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1"}
	fields, rest := fieldpath.NewSet(), []metav1.ManagedFieldsEntry(nil)
	for _, entry := range entries {
		if !applied(entry, to) && !former(entry) {
			rest = append(rest, entry)
			continue
		}
		has, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}
		taken := has.RecursiveDifference(spared)
		if kept := has.Difference(taken); !kept.Empty() && !applied(entry, to) {
			if entry.FieldsV1, err = fieldsV1(kept); err != nil {
				return nil, err
			}
			rest = append(rest, entry)
		}
		fields, ours.APIVersion = fields.Union(taken), entry.APIVersion
	}
	if !fields.Empty() {
		var err error
		if ours.FieldsV1, err = fieldsV1(fields); err != nil {
			return nil, err
		}
		rest = append(rest, ours)
	}
	return orNone(rest), nil
}

// RenameManager moves the applied fields of one manager to another; when that one holds
// some already, they are dropped.
func RenameManager(entries []metav1.ManagedFieldsEntry, from, to string) []metav1.ManagedFieldsEntry {
	var renamed []metav1.ManagedFieldsEntry
	exists := false
	for _, entry := range entries {
		exists = exists || applied(entry, to)
	}
	for _, entry := range entries {
		if applied(entry, from) {
			if exists {
				continue
			}
			entry.Manager = to
		}
		renamed = append(renamed, entry)
	}
	return orNone(renamed)
}

// orNone returns the value with which the API server removes all entries when there are none.
func orNone(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	if len(entries) == 0 {
		return []metav1.ManagedFieldsEntry{{}}
	}
	return entries
}

func applied(entry metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// WithoutGiven removes from the manager's entry the fields that an action leaves to others: those that the spec ignores, and those that
// an autoscaler sets from now on, which HandoverManager gets. HandoverManager loses those that the bundle sets again. It tells
// whether anything changes.
func WithoutGiven(entries []metav1.ManagedFieldsEntry, manager string, action plan.Action) ([]metav1.ManagedFieldsEntry, bool, error) {
	var changed []metav1.ManagedFieldsEntry
	held := false
	kept := metav1.ManagedFieldsEntry{
		Manager: inventory.HandoverManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: action.Desired.GetAPIVersion(), FieldsType: "FieldsV1",
	}
	keeps := action.Handover.Paths()
	for _, entry := range entries {
		fields, err := fieldsOf(entry)
		if err != nil {
			return nil, false, err
		}
		left := fields
		switch {
		case applied(entry, manager):
			left = left.Difference(keeps)
			for _, pointer := range action.Given {
				left = left.RecursiveDifference(fieldpath.NewSet(pathOf(left, action.Desired.Object, pointer)))
			}
		case applied(entry, inventory.HandoverManager):
			left = left.Difference(fieldpath.NewSet(action.Handover.Regained...))
			keeps = keeps.Union(left)
		}
		held = held || left.Size() < fields.Size()
		if applied(entry, inventory.HandoverManager) {
			continue
		}
		if entry.FieldsV1, err = fieldsV1(left); err != nil {
			return nil, false, err
		}
		changed = append(changed, entry)
	}
	if held && !keeps.Empty() {
		var err error
		if kept.FieldsV1, err = fieldsV1(keeps); err != nil {
			return nil, false, err
		}
		changed = append(changed, kept)
	}
	return changed, held, nil
}
