// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Lean replaces the compressed inventory of two states of a deployment by short placeholders where a merge patch does not need it. The
// patch between the results is the patch between the originals, but costs less to compute. See pipeline.StatusWriter.
func Lean(before, object client.Object) (leanBefore, leanObject client.Object) {
	earlier, isDeployment := before.(*v1alpha1.BundleDeployment)
	later, alsoDeployment := object.(*v1alpha1.BundleDeployment)
	if !isDeployment || !alsoDeployment || earlier.Status.Inventory == nil || later.Status.Inventory == nil ||
		earlier.Status.Inventory.Compressed == "" || later.Status.Inventory.Compressed == "" {
		return before, object
	}
	const same, other = "same", "other"
	lean := *earlier
	lean.Status.Inventory = withCompressed(earlier.Status.Inventory, other)
	if earlier.Status.Inventory.Compressed != later.Status.Inventory.Compressed {
		return &lean, object
	}
	leanAfter := *later
	lean.Status.Inventory = withCompressed(earlier.Status.Inventory, same)
	leanAfter.Status.Inventory = withCompressed(later.Status.Inventory, same)
	return &lean, &leanAfter
}

// withCompressed is an inventory with other compressed entries.
func withCompressed(of *v1alpha1.Inventory, compressed string) *v1alpha1.Inventory {
	changed := *of
	changed.Compressed = compressed
	return &changed
}
