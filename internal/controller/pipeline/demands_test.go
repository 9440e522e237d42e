// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// demanding requests a reconcile of each of some objects every 10 ms, each with the given duration, and returns how
// many were answered in each second.
func demanding(q *pipeline.Demands, namespace string, objects int, takes, lasts time.Duration) (answered []int) {
	const every = 10 * time.Millisecond
	start := time.Unix(1_000_000, 0)
	answered = make([]int, lasts/time.Second)
	busy := map[int]time.Time{}
	for since := time.Duration(0); since < lasts; since += every {
		now := start.Add(since)
		for i := range objects {
			key := types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(i)}
			if until := busy[i]; !until.IsZero() && !now.Before(until) {
				q.Took(key, takes, pipeline.MostCharged, now)
				delete(busy, i)
			}
			if busy[i].IsZero() && q.Pause(key, since.String(), now) == 0 {
				answered[since/time.Second]++
				busy[i] = now.Add(takes)
			}
		}
	}
	return answered
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// Constant demands on one object are answered five times at once, and then once a second, if the reconciles are short.
func TestT16DemandsAreSpaced(t *testing.T) {
	const seconds = 30
	answered := demanding(pipeline.NewDemands(), "shop", 1, 50*time.Millisecond, seconds*time.Second)
	if answered[0] != 5 || sum(answered) < seconds || sum(answered) > seconds+8 {
		t.Errorf("answered in each second: %v", answered)
	}
}

// A namespace gets a fifth of the time of a worker for constant demands on many objects.
func TestT16DemandsOfANamespaceShareItsTime(t *testing.T) {
	const objects, seconds = 8, 60
	const takes = 400 * time.Millisecond
	answered := demanding(pipeline.NewDemands(), "shop", objects, takes, seconds*time.Second)
	const prompt = objects * (5 + seconds/20)
	want := prompt + int(seconds*time.Second/5/takes)
	if got := sum(answered); got < prompt || got > want+10 {
		t.Errorf("%d demands were answered in a minute, want at most %d: %v", got, want, answered)
	}
}

// A user who edits a small bundle every second is answered at once, also when other namespaces demand much and make some of the
// answers late, and when each edit takes several reconciles, which the load makes long.
func TestT16SteadyEditsDoNotWait(t *testing.T) {
	q := pipeline.NewDemands()
	demanding(q, "greedy", 8, time.Second, 10*time.Second)
	key, start := types.NamespacedName{Namespace: "shop", Name: "web"}, time.Unix(1_000_000, 0)
	const usual = 150 * time.Millisecond
	for i := range 60 {
		now := start.Add(time.Duration(i) * time.Second)
		if i%3 == 1 {
			now = now.Add(600 * time.Millisecond) // it was seen late
		}
		if pause := q.Pause(key, fmt.Sprint(i), now); pause > 0 {
			t.Fatalf("edit %d has to wait for %s", i, pause)
		}
		for range 3 {
			q.Took(key, 200*time.Millisecond, usual, now)
		}
	}
}

// A demand waits once, as long as the returned pause; an answered one does not wait.
func TestDemandsThatWait(t *testing.T) {
	q := pipeline.NewDemands()
	key, now := types.NamespacedName{Namespace: "shop", Name: "web"}, time.Unix(1_000_000, 0)
	for i := range 6 {
		q.Pause(key, fmt.Sprint(i), now)
	}
	if q.Pause(key, "4", now) != 0 {
		t.Error("what was answered waits")
	}
	pause := q.Pause(key, "5", now)
	if pause <= 0 || pause > time.Second || q.Pause(key, "5", now.Add(pause)) != 0 {
		t.Errorf("it has to wait longer than the %s that it was told", pause)
	}
	now = now.Add(pause)
	q.Took(key, time.Hour, pipeline.MostCharged, now)
	if pause := q.Pause(key, "6", now); pause <= time.Second || pause > time.Minute {
		t.Errorf("after a long reconcile it waits %s", pause)
	}
	q.Drop(key, now)
	if q.Pause(key, "6", now) != 0 {
		t.Error("an object that was forgotten waits")
	}
}
