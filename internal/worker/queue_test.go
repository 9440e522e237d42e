// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"strings"
	"testing"
	"time"
)

// line is a queue with a clock that the test moves.
type line struct {
	*queue
	now time.Time
}

func newLine(workers int) *line {
	return &line{newQueue(workers, newBudgets(time.Minute, 10*time.Minute)), time.Unix(1e9, 0)}
}

// join adds jobs of the namespaces.
func (l *line) join(namespaces ...string) []*job {
	jobs := make([]*job, 0, len(namespaces))
	for _, namespace := range namespaces {
		j := &job{request: Request{Namespace: namespace}}
		l.add(j, false)
		jobs = append(jobs, j)
	}
	return jobs
}

// order starts and ends all jobs one after the other, with no CPU time used.
func (l *line) order() string {
	var names []string
	for j := l.next(l.now); j != nil; j = l.next(l.now) {
		names = append(names, j.request.Namespace)
		l.done(j)
	}
	return strings.Join(names, " ")
}

// TestQueueInTurn: light namespaces take turns.
func TestQueueInTurn(t *testing.T) {
	l := newLine(1)
	l.join("a", "a", "a", "a", "b", "c", "b")
	if got := l.order(); got != "a b c a b a a" {
		t.Errorf("got %s", got)
	}
}

// TestQueueComesBack: a namespace that always queues another job waits for its turn.
func TestQueueComesBack(t *testing.T) {
	l := newLine(1)
	l.join("b", "b", "b", "a")
	var names []string
	for j := l.next(l.now); j != nil && len(names) < 8; j = l.next(l.now) {
		names = append(names, j.request.Namespace)
		l.done(j)
		if j.request.Namespace == "a" {
			l.join("a")
		}
	}
	if got := strings.Join(names, " "); got != "b a b a b a a a" {
		t.Errorf("got %s", got)
	}
}

// TestQueueOneOfNamespace starts one job of a namespace at a time.
func TestQueueOneOfNamespace(t *testing.T) {
	l := newLine(3)
	l.join("a", "a", "b")
	first, second := l.next(l.now), l.next(l.now)
	if first == nil || second == nil || first.request.Namespace == second.request.Namespace {
		t.Fatalf("got %v and %v", first, second)
	}
	if third := l.next(l.now); third != nil {
		t.Errorf("a second job of %s runs", third.request.Namespace)
	}
}

// TestQueueHeavy leaves one worker to namespaces that have used little.
func TestQueueHeavy(t *testing.T) {
	l := newLine(2)
	l.budgets.charge("x", 40*time.Second, l.now)
	l.budgets.charge("y", 20*time.Second, l.now)
	l.join("x", "y", "v")
	if j := l.next(l.now); j.request.Namespace != "v" {
		t.Errorf("first: %s, want the one that has used nothing", j.request.Namespace)
	}
	heavy := l.next(l.now)
	if heavy.request.Namespace != "y" || !heavy.heavy {
		t.Errorf("second: %s, want the one that has used less", heavy.request.Namespace)
	}
	l.done(l.running["v"])
	if j := l.next(l.now); j != nil {
		t.Errorf("%s runs beside another heavy one", j.request.Namespace)
	}
	l.join("v")
	if j := l.next(l.now); j == nil || j.request.Namespace != "v" {
		t.Error("the worker that is left to others is not")
	}
	l.done(heavy)
	if j := l.next(l.now); j == nil || j.request.Namespace != "x" {
		t.Error("the other heavy one does not follow")
	}
}

// TestQueueOneWorker has nothing to leave to others.
func TestQueueOneWorker(t *testing.T) {
	l := newLine(1)
	l.budgets.charge("x", 40*time.Second, l.now)
	l.join("x", "v")
	if got := l.order(); got != "v x" {
		t.Errorf("got %s", got)
	}
}

// TestQueueAlone lets a job run with no other one.
func TestQueueAlone(t *testing.T) {
	l := newLine(2)
	jobs := l.join("a", "b", "c")
	if l.next(l.now) != jobs[0] {
		t.Fatal("a is not first")
	}
	jobs[2].alone = true
	if j := l.next(l.now); j != nil {
		t.Errorf("%s starts although c waits to be alone", j.request.Namespace)
	}
	l.done(jobs[0])
	if l.next(l.now) != jobs[2] {
		t.Error("c does not start")
	}
	if j := l.next(l.now); j != nil {
		t.Errorf("%s starts beside c", j.request.Namespace)
	}
}

// TestBudgets uses CPU time and waits for the refill.
func TestBudgets(t *testing.T) {
	b, now := newBudgets(time.Minute, 10*time.Minute), time.Unix(1e9, 0)
	b.charge("a", 30*time.Second, now)
	if wait := b.wait("a", now); wait != 0 {
		t.Errorf("with half its time left it waits %s", wait)
	}
	b.charge("a", 50*time.Second, now)
	// 20 s too much, and one second to do something.
	if wait := b.wait("a", now); wait.Round(time.Second) != 210*time.Second {
		t.Errorf("it waits %s", wait)
	}
	if wait := b.wait("a", now.Add(211*time.Second)); wait != 0 {
		t.Errorf("after that it waits %s", wait)
	}
	if wait := b.wait("b", now); wait != 0 {
		t.Errorf("another one waits %s", wait)
	}
	b.charge("c", time.Second, now)
	if forgotten := b.forget(now.Add(time.Minute)); len(forgotten) != 1 || forgotten[0] != "c" || len(b.used) != 1 {
		t.Errorf("forgot %v", forgotten)
	}
	if left := b.spent("a", now.Add(-time.Hour)); left != 80*time.Second {
		t.Errorf("a clock that goes back gives %s", 80*time.Second-left)
	}
	unlimited := newBudgets(0, 0)
	unlimited.charge("a", time.Hour, now)
	if unlimited.wait("a", now) != 0 || len(unlimited.used) != 0 {
		t.Error("without a bound there is one")
	}
}
