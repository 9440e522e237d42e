// SPDX-License-Identifier: Apache-2.0

// Package settle finds out how the applied objects fare, and says so: their health, the conditions and counts of the
// status, the history, when a revision has failed for good, the events and metrics, and what is watched from now on. It
// changes no object of a bundle. Status.go is the one file that sets the conditions of a reconcile.
package settle

import (
	"github.com/satchel-dev/satchel/internal/apply/drift"
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/figures"
	"github.com/satchel-dev/satchel/internal/controller/deployment/scrub"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
)

// Stage is what settling needs beside its input.
type Stage struct {
	Events stage.Events
	// Approvals prove which revision was healthy.
	Approvals approval.Approvals
	// Watches are those of the objects, and Names those of the Secrets and ConfigMaps of the spec.
	Watches *drift.Hub
	Names   *drift.Names
	Scrubs  *scrub.Memory
	Work    *figures.Work
	Expiry  *figures.Expiry
	Holds   *figures.Holds
}

// Input is what a reconcile has found out, in the results of the stages. Settling writes the last of them, the note for the
// next reconcile, and the status.
type Input struct {
	*stage.Subject
	Listed    *stage.Listing
	Note      *stage.Note
	Resolved  *stage.Resolved
	Rendered  *stage.Rendered
	Decided   *stage.Decided
	Delivered *stage.Delivered
	Settled   *stage.Settled
	// Kept is about the last applied revision while a newer one fails, and KeepErr why its drift could not be corrected.
	Kept    *Input
	KeepErr error
	// ComparisonSkipped tells that the last applied revision was not compared, because nothing has changed it since it was.
	ComparisonSkipped bool
	// Condition is the type of the condition that the failed step sets; "" for none.
	Condition string
}
