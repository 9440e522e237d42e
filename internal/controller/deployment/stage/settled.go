// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/apply/health"
)

// Settled is how the objects fare: the result of the steps health and post-hooks, and of what
// follows the last step.
type Settled struct {
	Health *health.Report
	Gaps   []drift.Gap // collections that are not watched
	// RejectedNow: the revision was rejected in this reconcile.
	RejectedNow bool
	// Announced is the event about an apply; nil for none.
	Announced *Announcement
	// Held: the status is not stored yet.
	Held bool
}
