// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// HeldStatus is the status after an apply, which is not stored yet: usually the objects are healthy a moment later, and both
// are stored at once. A controller that is killed meanwhile finds its own writes in the inventory that it stored before them.
type HeldStatus struct {
	// Status is what is to be stored, and Stored what the API server has.
	Status, Stored v1alpha1.BundleDeploymentStatus
	Since          time.Time
	// Announced is the event about the apply, which is emitted with the next status.
	Announced *Announcement
}

// Announcement is an event that is not emitted yet.
type Announcement struct{ Reason, Note string }

// Restore puts the held status into a deployment that was read. It returns false if another client changed what is stored.
func (h *HeldStatus) Restore(d *v1alpha1.BundleDeployment) bool {
	if h == nil || !equality.Semantic.DeepEqual(h.Stored, d.Status) {
		return false
	}
	d.Status = *h.Status.DeepCopy()
	return true
}
