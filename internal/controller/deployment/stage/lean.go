// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Lean returns a deployment before and after a change without what a merge patch from one to the other does not contain: the
// compressed inventory. See pipeline.StatusWriter.
func Lean(before, object client.Object) (leanBefore, leanObject client.Object) {
	was, isDeployment := before.(*v1alpha1.BundleDeployment)
	is, alsoDeployment := object.(*v1alpha1.BundleDeployment)
	if !isDeployment || !alsoDeployment || was.Status.Inventory == nil || is.Status.Inventory == nil ||
		was.Status.Inventory.Compressed == "" || is.Status.Inventory.Compressed == "" {
		return before, object
	}
	const same, other = "same", "other"
	lean := *was
	lean.Status.Inventory = with(was.Status.Inventory, other)
	if was.Status.Inventory.Compressed != is.Status.Inventory.Compressed {
		return &lean, object
	}
	leanAfter := *is
	lean.Status.Inventory, leanAfter.Status.Inventory = with(was.Status.Inventory, same), with(is.Status.Inventory, same)
	return &lean, &leanAfter
}

// with is an inventory with other compressed entries.
func with(of *v1alpha1.Inventory, compressed string) *v1alpha1.Inventory {
	changed := *of
	changed.Compressed = compressed
	return &changed
}
