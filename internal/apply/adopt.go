// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// adopt transfers the managed fields of an object's former owner to our manager, so that
// the apply that follows also removes what is not desired. It removes the former owner's
// labels and annotations. The decision of the plan is made again for the object as it is
// now; when the object changes meanwhile, adopt reads it again.
func (w writer) adopt(ctx context.Context, action plan.Action) error {
	ref := refOf(action.ID, action.Resource)
	var err error
	for range attempts {
		var live *metav1.PartialObjectMetadata
		if live, err = w.client.Metadata(ctx, ref); err != nil {
			break
		}
		seen := plan.LiveOf(live, w.owner)
		switch seen.ClaimOf(w.owner, w.protection) {
		case plan.Owned:
			return nil // adopted by an earlier attempt
		case plan.Foreign:
			return &refusal{why: seen.Collides(action.ID, w.owner).String()}
		}
		if err = w.takeOver(ctx, ref, live); !apierrors.IsConflict(err) {
			break
		}
	}
	if err == nil || apierrors.IsNotFound(err) { // the apply creates it
		return nil
	}
	return fmt.Errorf("adopting the object: %w", err)
}

// takeOver records our manager as the owner, on condition that the object is as it was read.
func (w writer) takeOver(ctx context.Context, ref tenant.Ref, live *metav1.PartialObjectMetadata) error {
	entries, err := handOver(live.ManagedFields, w.owner.Manager())
	if err != nil {
		return err
	}
	metadata := plan.Unmark(live)
	metadata["managedFields"] = entries
	_, err = w.client.Merge(ctx, ref, metadataPatch(live, metadata), inventory.OrphanManager)
	return err
}

// spared are fields that an adoption leaves to their managers: the status and the
// finalizers.
var spared = fieldpath.NewSet(fieldpath.MakePathOrDie("status"), fieldpath.MakePathOrDie("metadata", "finalizers"))

// handOver moves the managed fields of former owners to a manager, as if it had applied
// them. An orphaned object has one former owner, the manager of orphaned objects; for any
// other object these are all managers that write whole manifests. Subresources stay with
// their managers.
func handOver(entries []metav1.ManagedFieldsEntry, to string) ([]metav1.ManagedFieldsEntry, error) {
	left := slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool { return applied(entry, inventory.OrphanManager) })
	former := func(entry metav1.ManagedFieldsEntry) bool {
		switch {
		case entry.Subresource != "" || entry.FieldsV1 == nil:
			return false
		case left:
			return applied(entry, inventory.OrphanManager)
		}
		return plan.IsFormer(entry.Manager) || inventory.IsManager(entry.Manager)
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

func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
		return nil, fmt.Errorf("reading the managed fields of %q: %w", entry.Manager, err)
	}
	return set, nil
}

func fieldsV1(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	raw, err := set.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("writing managed fields: %w", err)
	}
	return metav1.NewFieldsV1(string(raw)), nil
}
