// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

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
	return orNone(renamed)
}

// orNone says in the API server's words that there is no entry.
func orNone(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	if len(entries) == 0 {
		return []metav1.ManagedFieldsEntry{{}}
	}
	return entries
}

func applied(entry metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}
