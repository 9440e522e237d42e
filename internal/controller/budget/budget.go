// SPDX-License-Identifier: Apache-2.0

// Package budget gives reconciles that depend on the API server of a tenant a time budget. It ends the turn of a reconcile,
// not the attempt: confirmed work is kept, and the next turn continues from there. Only several turns in a row without
// progress are a failure.
package budget

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/tenant/connection"
)

const (
	// Default is the budget of a turn if none is given.
	Default = 2 * time.Minute
	// MostIdle is how many turns in a row may confirm nothing; the last of them is a failure.
	MostIdle = 3
)

// Begin starts a turn: its context ends with the budget.
func Begin(ctx context.Context, budget time.Duration) (context.Context, context.CancelFunc) {
	if budget <= 0 {
		budget = Default
	}
	return context.WithTimeoutCause(ctx, budget, connection.ErrTurnOver)
}

// Over tells whether the context of a turn ended because its budget is used up.
func Over(turn context.Context) bool { return errors.Is(context.Cause(turn), connection.ErrTurnOver) }

// Turns remembers the progress of the last turns of each object. The zero value is ready for use; it is safe for concurrent
// use.
type Turns struct {
	mu   sync.Mutex
	kept map[types.NamespacedName]*turns
}

// turns of one object.
type turns struct {
	about  string
	idle   int
	passed map[inventory.ID]string
}

// End records that a turn used up its budget, and whether it made progress. It returns whether that is a failure: the third
// turn in a row for the same input without progress is, and the third after that.
func (t *Turns) End(key types.NamespacedName, about string, progress bool) (failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of(key)
	if progress || of.about != about {
		of.about, of.idle = about, 0
	}
	if !progress {
		of.idle++
	}
	return of.idle > 0 && of.idle%MostIdle == 0
}

// Pass records the objects that passed a dry run, each with its state: the next turns do not repeat these dry runs.
func (t *Turns) Pass(key types.NamespacedName, passed map[inventory.ID]string) {
	if len(passed) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of(key)
	if of.passed == nil {
		of.passed = make(map[inventory.ID]string, len(passed))
	}
	for id, state := range passed {
		of.passed[id] = state
	}
}

// Passed tells whether an object passed a dry run in this state.
func (t *Turns) Passed(key types.NamespacedName, id inventory.ID, state string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, found := t.kept[key]
	if !found {
		return false
	}
	known, found := of.passed[id]
	return found && known == state
}

// Forget drops the records of an object: a reconcile of it has completed, or it is gone.
func (t *Turns) Forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.kept, key)
}

func (t *Turns) of(key types.NamespacedName) *turns {
	if t.kept == nil {
		t.kept = map[types.NamespacedName]*turns{}
	}
	of, found := t.kept[key]
	if !found {
		of = &turns{}
		t.kept[key] = of
	}
	return of
}
