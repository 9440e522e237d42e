// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/controller/budget"
)

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

// T21b: three turns in a row without progress are a failure, and each three after them; progress, another spec, or a completed
// reconcile reset the count.
func TestT21bThreeIdleTurnsAreAFailure(t *testing.T) {
	t.Parallel()
	type turn struct {
		about    string
		progress bool
		failed   bool
	}
	cases := map[string][]turn{
		"idle":                {{"a", false, false}, {"a", false, false}, {"a", false, true}, {"a", false, false}, {"a", false, false}, {"a", false, true}},
		"progress in between": {{"a", false, false}, {"a", false, false}, {"a", true, false}, {"a", false, false}, {"a", false, false}, {"a", false, true}},
		"another spec":        {{"a", false, false}, {"a", false, false}, {"b", false, false}, {"b", false, false}, {"b", false, true}},
		"always progress":     {{"a", true, false}, {"a", true, false}, {"a", true, false}, {"a", true, false}},
	}
	for name, turns := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var kept budget.Progress
			for i, turn := range turns {
				if failed := kept.End(web, turn.about, turn.progress); failed != turn.failed {
					t.Fatalf("turn %d: failed is %v, want %v", i+1, failed, turn.failed)
				}
			}
		})
	}
	var kept budget.Progress
	kept.End(web, "a", false)
	kept.End(web, "a", false)
	kept.Forget(web)
	if kept.End(web, "a", false) {
		t.Error("turns from before a reconcile that came to its end count")
	}
}

func TestT21bDryRunsAreRememberedByState(t *testing.T) {
	t.Parallel()
	id := inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: "a"}
	var kept budget.Progress
	if kept.Passed(web, id, "") {
		t.Error("nothing was tried, and it passed")
	}
	kept.Pass(web, map[inventory.ID]string{id: "1"})
	if !kept.Passed(web, id, "1") || kept.Passed(web, id, "2") {
		t.Error("want it to have passed in state 1 alone")
	}
	if kept.Forget(web); kept.Passed(web, id, "1") {
		t.Error("it was not forgotten")
	}
}

// Only the budget ends a turn: not the deadline or the cancellation of the parent context.
func TestT21bOnlyTheBudgetEndsATurn(t *testing.T) {
	t.Parallel()
	turn, cancel := budget.Begin(t.Context(), time.Nanosecond)
	defer cancel()
	if <-turn.Done(); !budget.Over(turn) {
		t.Error("the budget is used up, and the turn is not over")
	}
	request, cancelRequest := context.WithTimeout(turn, time.Minute)
	defer cancelRequest()
	if !budget.Over(request) {
		t.Error("a request of the turn does not know that it is over")
	}
	around, cancelAround := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancelAround()
	for name, ctx := range map[string]context.Context{"deadline": around, "live": t.Context()} {
		turn, cancel := budget.Begin(ctx, 0)
		if budget.Over(turn) {
			t.Errorf("%s: the turn is over", name)
		}
		cancel()
		if budget.Over(turn) {
			t.Errorf("%s: a cancelled turn counts as out of budget", name)
		}
	}
}
