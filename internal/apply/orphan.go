// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// release orphans an object: it removes our labels, and moves our managed fields to the
// manager of orphaned objects. The caller adds further fields to the patch.
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

// metadataPatch is a merge patch on condition that the object is as it was read.
func metadataPatch(live metav1.Object, metadata map[string]any) map[string]any {
	metadata["resourceVersion"] = live.GetResourceVersion()
	metadata["uid"] = live.GetUID()
	return map[string]any{"metadata": metadata}
}

// rename moves the applied fields of one manager to another; when that one holds
// some already, they are dropped.
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
