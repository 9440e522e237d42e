// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// takeUp makes the manager hold what was applied to an object that was left
// behind, so that the apply which follows also removes what is not desired any
// more. The mark goes with the fields.
func takeUp(ctx context.Context, client *tenant.Client, ref tenant.Ref, manager string) error {
	live, err := client.Metadata(ctx, ref)
	if err != nil {
		return fmt.Errorf("taking up an orphaned object: %w", err)
	}
	entries := rename(live.ManagedFields, inventory.OrphanManager, manager)
	_, err = client.Merge(ctx, ref, metadataPatch(live, map[string]any{
		"annotations":   map[string]any{inventory.AnnotationOrphaned: nil},
		"managedFields": entries,
	}), inventory.OrphanManager)
	if err != nil {
		return fmt.Errorf("taking up an orphaned object: %w", err)
	}
	return nil
}

// release marks an object as orphaned and gives our hold on it up: the labels go,
// and what we applied is held by a manager that stands for nobody. Further fields
// of the patch are given by the caller.
func release(ctx context.Context, client *tenant.Client, ref tenant.Ref, live metav1.Object, owner inventory.Owner, further map[string]any) error {
	entries := rename(live.GetManagedFields(), owner.Manager(), inventory.OrphanManager)
	patch := metadataPatch(live, map[string]any{
		"annotations":   map[string]any{inventory.AnnotationOrphaned: owner.Namespace + "/" + owner.Name},
		"labels":        map[string]any{inventory.LabelDeployment: nil, inventory.LabelNamespace: nil},
		"managedFields": entries,
	})
	for field, value := range further {
		patch[field] = value
	}
	_, err := client.Merge(ctx, ref, patch, inventory.OrphanManager)
	return err
}

// metadataPatch is a merge patch that holds only for the object as it was read.
func metadataPatch(live metav1.Object, metadata map[string]any) map[string]any {
	metadata["resourceVersion"] = live.GetResourceVersion()
	metadata["uid"] = live.GetUID()
	return map[string]any{"metadata": metadata}
}

// rename gives the applied fields of one manager to another; when that one holds
// some already, they are only given up.
func rename(entries []metav1.ManagedFieldsEntry, from, to string) []metav1.ManagedFieldsEntry {
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
	if len(renamed) == 0 {
		renamed = []metav1.ManagedFieldsEntry{{}} // the API server's word for "none"
	}
	return renamed
}

func applied(entry metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}
