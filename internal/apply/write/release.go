// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Release orphans an object: it removes our labels, and moves our managed fields to the
// manager of orphaned objects. The caller adds further fields to the patch.
func Release(ctx context.Context, client *tenant.Client, ref tenant.Ref, live metav1.Object, owner inventory.Owner, further map[string]any) error {
	entries := fieldmanager.RenameManager(live.GetManagedFields(), owner.Manager(), inventory.OrphanManager)
	patch := MetadataPatch(live, map[string]any{
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

// MetadataPatch is a merge patch on condition that the object is as it was read.
func MetadataPatch(live metav1.Object, metadata map[string]any) map[string]any {
	metadata["resourceVersion"] = live.GetResourceVersion()
	metadata["uid"] = live.GetUID()
	return map[string]any{"metadata": metadata}
}
