// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/autoscaling"
)

// Kind is the kind of an outcome.
type Kind string

const (
	// Created: it did not exist.
	Created Kind = "Created"
	// Updated: its content was brought to what is desired.
	Updated Kind = "Updated"
	// Adopted: it was not ours, and is now.
	Adopted Kind = "Adopted"
	// Repaired: it had drifted.
	Repaired Kind = "Repaired"
	// Recreated: it was deleted and created again, for fields of it are immutable.
	Recreated Kind = "Recreated"
	// Settled: an apply looked at it and changed nothing of ours.
	Settled Kind = "Settled"
	// Unchanged: no request was sent.
	Unchanged Kind = "Unchanged"
	// Conflict: another manager holds some of its fields; it was not written.
	Conflict Kind = "Conflict"
	// Failed: it could not be written.
	Failed Kind = "Failed"
	// Pending: it cannot be written yet.
	Pending Kind = "Pending"
)

// Outcome is what happened to one object.
type Outcome struct {
	inventory.ID
	Kind   Kind
	Reason string             // why it was written, or what it waits for
	Err    *objecterror.Error // of Conflict and Failed
	// GaveWay are the fields of other managers, and defaults, that were removed because they exclude what the bundle sets.
	GaveWay []fieldmanager.Field
	// Kept are fields that left the bundle, and that an autoscaler sets from now on.
	Kept []autoscaling.Kept

	entry     inventory.Entry // when it was written
	version   string          // resource version, when it was written
	live      *unstructured.Unstructured
	untracked bool
	reset     bool // entry holds although nothing was written: it was deleted, or not begun
}

// String is the outcome for people.
func (o Outcome) String() string {
	switch {
	case o.Err != nil:
		return o.Err.Error()
	case o.Reason != "":
		return fmt.Sprintf("%s %s: it %s", o.ID, strings.ToLower(string(o.Kind)), o.Reason)
	}
	return fmt.Sprintf("%s %s", o.ID, strings.ToLower(string(o.Kind)))
}

// Recreates tells that the object was deleted to be recreated, even if it is not
// created yet.
func (o Outcome) Recreates() bool { return o.reset && o.Kind != Conflict || o.Kind == Recreated }

// stops tells whether later stages must not start.
func (o Outcome) stops() bool {
	return o.Kind == Conflict || o.Kind == Failed || o.Kind == Pending
}

// Result is the result of Apply.
type Result struct {
	// Outcomes of all objects in the stages that were begun, in the order of the plan.
	Outcomes []Outcome
	// Inventory is the plan's, with the state of the objects that were written;
	// it is to be stored even when something failed.
	Inventory inventory.Inventory
	// Live holds the API server's answers for the objects that health.Check has to assess;
	// fresh input for it.
	Live map[inventory.ID]*unstructured.Unstructured
	// Versions are the resource versions of the objects that were written.
	Versions map[inventory.ID]string
	// Stage that was not passed; empty when all were.
	Stage string
	// Pending says what Stage waits for when nothing failed: try again soon.
	Pending string
	// Waits says why Stage has to wait for the health of earlier phases; nil when it need not.
	Waits *PhaseWait
	// Warnings of the API server, sorted and bounded.
	Warnings []string
}

// PhaseWait is what a phase waits for, or what comes after all phases.
type PhaseWait struct {
	For     string // what waits, and what that means; empty for the phase
	Phase   int
	Objects []plan.Object // of the earlier phases, without content: those that have a health check
	Report  health.Report // of them, not healthy
}

// Complete tells that every object of the plan is applied.
func (r Result) Complete() bool { return r.Stage == "" }

// Count is the number of outcomes of a kind.
func (r Result) Count(kind Kind) int {
	count := 0
	for _, outcome := range r.Outcomes {
		if outcome.Kind == kind {
			count++
		}
	}
	return count
}

// Errors are the failures and conflicts, in the order of the plan.
func (r Result) Errors() []*objecterror.Error {
	var errs []*objecterror.Error
	for _, outcome := range r.Outcomes {
		if outcome.Err != nil {
			errs = append(errs, outcome.Err)
		}
	}
	return errs
}

// kindOf maps a verb to the outcome of its success.
var kindOf = map[plan.Verb]Kind{
	plan.Create: Created, plan.Adopt: Adopted, plan.Update: Updated, plan.Repair: Repaired,
	plan.Recreate: Updated, plan.Settle: Settled, plan.Unchanged: Unchanged, plan.Wait: Pending,
}

// Wrote tells whether anything was written; a nil result wrote nothing.
func (r *Result) Wrote() bool {
	return r != nil && slices.ContainsFunc(r.Outcomes, func(o Outcome) bool {
		switch o.Kind {
		case Created, Updated, Adopted, Repaired, Recreated, Settled:
			return true
		}
		return false
	})
}
