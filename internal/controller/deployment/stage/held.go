// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/plural"
	"github.com/satchel-dev/satchel/internal/spec/revision"
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

// Announce returns the event about an apply: that of this reconcile, or of the status that is held since an earlier one; nil for
// none. It is emitted together with Ready if the revision is Ready at once.
func Announce(of *Subject, applied *apply.Result, held *HeldStatus) *Announcement {
	was, is := of.Before.Status.Applied.Revision, of.Object.Status.Applied.Revision
	var before *Announcement
	if held != nil {
		before = held.Announced
	}
	if applied == nil || was == is {
		return before
	}
	counts := fmt.Sprintf("%s created, %d updated", plural.Of(applied.Count(apply.Created), "object"), applied.Count(apply.Updated))
	if was == "" {
		return &Announcement{Reason: "Installed", Note: fmt.Sprintf("installed %s: %s", revision.Applied(&of.Object.Status), counts)}
	}
	note := fmt.Sprintf("upgraded from %s to %s: %s", revision.Applied(&of.Before.Status), revision.Applied(&of.Object.Status), counts)
	if before != nil {
		note = before.Note + "; then " + note
	}
	return &Announcement{Reason: "Upgraded", Note: note}
}
