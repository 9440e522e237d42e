// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"testing"

	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// An object that needs no turn any more releases it: one that it waits for, and one that it
// was promised.
func TestDroppedTurnsGoToOthers(t *testing.T) {
	turns := pipeline.NewTurns(1)
	queue := newQueue(t, turns)
	done, _ := turns.Take(key("a", 0))
	for i := 1; i <= 3; i++ {
		if _, ok := turns.Take(key("a", i)); ok {
			t.Fatal("two at once")
		}
	}
	turns.Drop(key("a", 1))
	turns.Drop(key("a", 9)) // who never asked
	if turns.Waiting() != 2 {
		t.Errorf("%d wait", turns.Waiting())
	}
	done()
	if got := next(t, queue); got != key("a", 2) {
		t.Fatalf("%s was called", got)
	}
	turns.Drop(key("a", 2)) // it was promised the turn
	if got := next(t, queue); got != key("a", 3) {
		t.Fatalf("%s was called", got)
	}
	done, ok := turns.Take(key("a", 3))
	if !ok {
		t.Fatal("the promised turn was not given")
	}
	done()
	if _, ok := turns.Take(key("a", 4)); !ok {
		t.Error("a turn was lost")
	}
}
