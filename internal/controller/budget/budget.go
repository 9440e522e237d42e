// SPDX-License-Identifier: Apache-2.0

// Package budget limits how long the turns of reconciles last that depend on the API server of a tenant. Who gets a turn is
// decided by pipeline.Turns. The budget ends the turn, not the attempt: confirmed work is kept, and the next turn continues
// from there. Only several turns in a row without progress are a failure.
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

// Progress remembers what the last turns of each object achieved. The zero value is ready for use; it is safe for concurrent
// use.
type Progress struct {
	mu   sync.Mutex
	kept map[types.NamespacedName]*record
}

// record is about one object.
type record struct {
	about  string
	idle   int
	passed map[inventory.ID]string
}

// End records that a turn used up its budget, and whether it made progress. It returns whether that is a failure: the third
// turn in a row for the same input without progress is, and the third after that.
func (p *Progress) End(key types.NamespacedName, about string, progress bool) (failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.recordOf(key)
	if progress || kept.about != about {
		kept.about, kept.idle = about, 0
	}
	if !progress {
		kept.idle++
	}
	return kept.idle > 0 && kept.idle%MostIdle == 0
}

// Pass records the objects that passed a dry run, each with its state: the next turns do not repeat these dry runs.
func (p *Progress) Pass(key types.NamespacedName, passed map[inventory.ID]string) {
	if len(passed) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.recordOf(key)
	if kept.passed == nil {
		kept.passed = make(map[inventory.ID]string, len(passed))
	}
	for id, state := range passed {
		kept.passed[id] = state
	}
}

// HasPassed tells whether any dry run is recorded.
func (p *Progress) HasPassed(key types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept, found := p.kept[key]
	return found && len(kept.passed) > 0
}

// Passed tells whether an object passed a dry run in this state.
func (p *Progress) Passed(key types.NamespacedName, id inventory.ID, state string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept, found := p.kept[key]
	if !found {
		return false
	}
	known, found := kept.passed[id]
	return found && known == state
}

// Forget drops the records of an object: a reconcile of it has completed, or it is gone.
func (p *Progress) Forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.kept, key)
}

func (p *Progress) recordOf(key types.NamespacedName) *record {
	if p.kept == nil {
		p.kept = map[types.NamespacedName]*record{}
	}
	kept, found := p.kept[key]
	if !found {
		kept = &record{}
		p.kept[key] = kept
	}
	return kept
}
