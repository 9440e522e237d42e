// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// fleets is how many fleets the properties are tried on.
func fleets() uint64 {
	if os.Getenv("SATCHEL_FULL") != "" {
		return 20_000
	}
	return 2_000
}

// TestProperties tries R1 to R8 on random fleets, with processes that are killed between record and act, caches that are late, a
// second leader, suspensions, aborts, approvals, windows, clusters that vanish, return and change, and newer revisions in a run.
func TestProperties(t *testing.T) {
	decisions, replaced, moved, clockSets := 0, 0, 0, 0
	why := map[string]int{}
	for seed := range fleets() {
		f := newFleet(seed)
		for range 60 {
			if f.chance(35) {
				f.perturb()
			}
			f.pass(5 * time.Minute)
			f.reconcileRollout(f.processes[f.random.IntN(len(f.processes))])
		}
		f.settle()
		if f.problem != "" {
			t.Fatalf("fleet %d: %s", seed, f.problem)
		}
		decisions += f.decisions
		replaced += f.replaced
		moved += f.moved
		clockSets += f.clockSets
		for reason, times := range f.why {
			why[reason] += times
		}
	}
	t.Logf("%d decisions: %v; %d clusters were replaced, %d are out of reach with a start that has not ended, clocks were set %d times", decisions, why, replaced, moved, clockSets)
	if replaced < 50 || moved < 50 || clockSets < 50 {
		t.Errorf("only %d clusters were replaced, %d are out of reach, and clocks were set %d times: the fleets are too tame", replaced, moved, clockSets)
	}
	for _, reason := range allReasons {
		if why[reason] < 20 {
			t.Errorf("only %d decisions are %s: the fleets are too tame", why[reason], reason)
		}
	}
}

// allReasons is the closed list.
var allReasons = []string{
	v1alpha1.ReasonUpdating, v1alpha1.ReasonSoaking, v1alpha1.ReasonApprovalPending, v1alpha1.ReasonOutsideWindow, v1alpha1.ReasonSuspended,
	v1alpha1.ReasonHeld, v1alpha1.ReasonNoClusterReachable, v1alpha1.ReasonNoClusterSucceeded, v1alpha1.ReasonMaxUnavailableReached,
	v1alpha1.ReasonMaxFailuresExceeded, v1alpha1.ReasonRollingBack, v1alpha1.ReasonRevisionRejected, v1alpha1.ReasonCatchingUp, v1alpha1.ReasonComplete,
}

// settle opens all gates and waits: R5.
func (f *fleet) settle() {
	f.suspended, f.approvals = false, true
	f.strategy.setWindows(nil)
	f.retries = false
	f.abandon, f.unlisted = true, false
	f.processes = f.processes[len(f.processes)-1:]
	still := 0
	limit := 10*len(f.members) + 40
	for range limit {
		f.pass(10 * time.Minute)
		before := f.status.Starts
		f.reconcileRollout(f.processes[0])
		still++
		if f.status.Starts != before || !slices.Contains(standstills, f.lastWhy) {
			still = 0
		}
		if still > 5 || f.problem != "" {
			f.checkReplaced()
			f.checkReleased()
			f.checkOutdated()
			return
		}
	}
	f.fail("R5: stuck: after %d decisions it is %s", limit, f.lastWhy)
}

// standstills are the reasons at which a rollout may stay for ever, with open gates.
var standstills = []string{
	v1alpha1.ReasonComplete, v1alpha1.ReasonRevisionRejected, v1alpha1.ReasonMaxFailuresExceeded, v1alpha1.ReasonMaxUnavailableReached,
	v1alpha1.ReasonNoClusterSucceeded, v1alpha1.ReasonNoClusterReachable, v1alpha1.ReasonHeld,
}

func (f *fleet) fail(format string, args ...any) {
	if f.problem == "" {
		f.problem = fmt.Sprintf(format, args...)
	}
}

// check compares a decision that was recorded with the properties.
func (f *fleet) check(p *process, in *Input, out *Decision) {
	f.decisions++
	f.why[out.Why]++
	f.lastWhy = out.Why
	v := f.view(p, in, out)
	f.checkConcurrency(v)
	f.checkAvailability(v)
	f.checkGates(v)
	f.checkWaves(v)
	f.checkWhy(v)
	f.checkRebuilt(v)
	f.checkHeld(v)
	f.checkOverdue(p, v)
	f.halted = v.halted() || in.Strategy.unreachable == v1alpha1.UnreachableFail
	numbers := map[int64]bool{}
	for _, s := range out.Starts {
		if s.Start <= in.Starts || numbers[s.Start] {
			f.fail("the number %d was used before", s.Start)
		}
		numbers[s.Start] = true
	}
	if len(in.Starting)+len(out.Starts) > v1alpha1.MaxStarting {
		f.fail("%d starts are recorded", len(in.Starting)+len(out.Starts))
	}
}

// view is a decision with what is true of its clusters.
type view struct {
	in       *Input
	out      *Decision
	started  map[string]string // the revision that a cluster gets now
	inFlight []bool            // in truth, before the decision
	states   []State
}

// view finds out what is true: a cluster is also in flight if the process has not seen its last start.
func (f *fleet) view(p *process, in *Input, out *Decision) *view {
	v := &view{in: in, out: out, started: map[string]string{}}
	for _, s := range out.Starts {
		v.started[s.Cluster] = s.Revision
	}
	recorded := map[string]bool{}
	for _, s := range p.status.Starting {
		recorded[s.Cluster] = true
	}
	for i := range in.Clusters {
		m := f.member(in.Clusters[i].Name)
		newest, seen := m.newest().child, in.Clusters[i].Child
		unseen := newest != nil && (seen == nil || newest.Start > seen.Start)
		state, _, _ := out.State(i)
		v.states = append(v.states, state)
		v.inFlight = append(v.inFlight, unseen || recorded[m.name] || lands(in, &in.Clusters[i]))
	}
	return v
}

// lands tells whether the last start of a cluster is under way as far as the process sees: it is neither ready nor failed, and
// neither held nor out of reach.
func lands(in *Input, fact *Fact) bool {
	c := fact.Child
	counts := func(since time.Time) time.Time {
		if since.After(in.Now.Add(time.Minute)) { // the clock was set back
			return in.Began
		}
		return latest(since, in.Began)
	}
	switch {
	case c == nil, c.Suspended, c.OtherTarget && c.ObservedGeneration == c.Generation, !fact.UnreachableSince.IsZero() && in.Now.Sub(counts(fact.UnreachableSince)) >= in.Strategy.unreachableAfter:
		return false
	case c.ObservedGeneration != c.Generation:
		return true
	}
	isOverdue := in.Now.Sub(counts(c.Started)) >= in.Strategy.progressDeadline
	return c.Outcome == "" && !c.Ready && !c.Stalled && !isOverdue
}

// checkConcurrency is R1.
func (f *fleet) checkConcurrency(v *view) {
	for wave := range v.in.Strategy.Waves {
		size, before, more, again := 0, 0, 0, 0
		for i := range v.in.Clusters {
			if v.in.Clusters[i].Wave != wave {
				continue
			}
			size++
			_, started := v.started[v.in.Clusters[i].Name]
			switch {
			case v.inFlight[i]:
				before++
				if started {
					again++
				}
			case started:
				more++
			}
		}
		if most := v.in.Strategy.Waves[wave].maxConcurrency.value; more+again > 0 && before+more > max(min(most, size), 1) {
			f.fail("R1: %d of wave %d are in flight, and %d begin: at most %d may", before, wave, more, most)
		}
	}
}

// checkAvailability is R3.
func (f *fleet) checkAvailability(v *view) {
	for wave := range v.in.Strategy.Waves {
		size, unavailable, taken := 0, 0, 0
		for i := range v.in.Clusters {
			if v.in.Clusters[i].Wave != wave {
				continue
			}
			size++
			child := v.in.Clusters[i].Child
			isReady := child != nil && child.Ready && child.ObservedGeneration == child.Generation && v.states[i] != Updating && v.states[i] != Starting
			_, started := v.started[v.in.Clusters[i].Name]
			switch {
			case !isReady:
				unavailable++
			case started:
				taken++
			}
		}
		if most := v.in.Strategy.Waves[wave].maxUnavailable.value; taken > 0 && unavailable+taken > max(min(most, size), 1) {
			f.fail("R3: %d of wave %d are unavailable, and %d ready ones begin: at most %d may be", unavailable, wave, taken, most)
		}
	}
}

// checkGates is R6.
func (f *fleet) checkGates(v *view) {
	if len(v.started) == 0 {
		return
	}
	isCurrent := v.in.Current != nil && v.in.Current.Digest == v.in.Update.Digest
	if v.in.Suspended || v.out.Reject {
		f.fail("R6: starts while suspended, or when it is rejected")
	}
	if !v.in.Return && v.halted() {
		f.fail("R6: starts while too many have failed")
	}
	for i := range v.in.Clusters {
		fact := &v.in.Clusters[i]
		revision, started := v.started[fact.Name]
		if !started {
			continue
		}
		switch rules := &v.in.Strategy.Waves[fact.Wave]; {
		case v.in.Return && revision != v.in.Current.Name:
			f.fail("R6: %s gets %s in a return", fact.Name, revision)
		case v.in.Return:
		case v.in.Strategy.hasWindows():
			f.fail("R6: %s begins outside of the window", fact.Name)
		case revision == v.in.Update.Name && !isCurrent && rules.needsApprovalBefore() && len(v.in.Approvals) == 0:
			f.fail("R6: %s begins without an approval", fact.Name)
		}
		if v.states[i] != Pending && (v.states[i] != Unreachable || fact.Child.hasEnded()) {
			f.fail("R6: %s begins, which is %s", fact.Name, v.states[i])
		}
		if newest := f.member(fact.Name).newest().child; !v.in.Return && revision != v.in.Update.Name && newest != nil && newest.Revision == v.in.Update.Name {
			f.fail("R4: %s has the update revision, and gets %s", fact.Name, revision)
		}
	}
}

// halted tells whether the failures of any wave are beyond its budget, from the states alone.
func (v *view) halted() bool {
	if v.in.Strategy.onFailure == v1alpha1.RolloutContinue {
		return false
	}
	for wave := range v.in.Strategy.Waves {
		if v.failures(wave) > v.in.Strategy.Waves[wave].maxFailures.value {
			return true
		}
	}
	return false
}

func (v *view) failures(wave int) int {
	of, failed := 0, 0
	for i := range v.in.Clusters {
		if v.in.Clusters[i].Wave != wave {
			continue
		}
		of++
		if v.states[i] == Failed {
			failed++
		}
	}
	return failed
}

// count is how many clusters of a wave have one of the states.
func (v *view) count(wave int, states ...State) int {
	found := 0
	for i := range v.in.Clusters {
		if v.in.Clusters[i].Wave == wave && slices.Contains(states, v.states[i]) {
			found++
		}
	}
	return found
}

var everyState = []State{Starting, Pending, Held, Unreachable, Updating, Failed, Updated}

// checkWaves is R2 and R4.
func (f *fleet) checkWaves(v *view) {
	if v.out.Reject && v.out.Why != v1alpha1.ReasonRollingBack {
		f.fail("R8: it rejects the revision, and says %s", v.out.Why)
	}
	if v.in.Return {
		return
	}
	if len(v.out.Look) > 0 && v.in.Now.Before(v.out.Waves[v.out.Open].SuccessTime.Add(v.in.Strategy.Waves[v.out.Open].soak)) {
		f.fail("R2: clusters are looked at again before the soak time is over")
	}
	before := true
	for wave := range v.out.Waves {
		status := &v.out.Waves[wave]
		key := fmt.Sprintf("%d/%s", v.in.Run, status.Name)
		isComplete := status.CompletionTime != nil
		f.checkSoak(v, wave, key)
		if f.completed[key] && !isComplete {
			f.fail("R4: wave %d is open again", wave)
		}
		if isComplete && !f.completed[key] {
			f.completed[key] = true
			f.checkCompletion(v, wave, before)
		}
		for i := range v.in.Clusters {
			revision, started := v.started[v.in.Clusters[i].Name]
			isUpdate := started && revision == v.in.Update.Name && (v.in.Current == nil || revision != v.in.Current.Name)
			if v.in.Clusters[i].Wave == wave && isUpdate && !before {
				f.fail("R2: %s of wave %d begins before the waves before it are complete", v.in.Clusters[i].Name, wave)
			}
		}
		before = before && isComplete
	}
}

// checkCompletion is R2 of a wave that has just been completed.
func (f *fleet) checkCompletion(v *view, wave int, before bool) {
	rules, status := &v.in.Strategy.Waves[wave], &v.out.Waves[wave]
	switch {
	case v.count(wave, everyState...) == 0, v.in.Current != nil && v.in.Current.Digest == v.in.Update.Digest:
		return // the second: all clusters were brought back
	case v.halted():
		f.fail("R6: wave %d is complete while too many have failed", wave)
	case status.SuccessTime == nil:
		f.fail("R2: wave %d is complete, and never succeeded", wave)
		return
	case !before:
		f.fail("R2: wave %d is complete before an earlier one", wave)
	case v.count(wave, Updated) == 0:
		f.fail("R2: wave %d is complete without a success", wave)
	case v.count(wave, Starting, Pending, Held, Updating) > 0:
		f.fail("R2: wave %d is complete while clusters are on their way", wave)
	case v.in.Now.Before(status.SuccessTime.Add(rules.soak)):
		f.fail("R2: wave %d is complete before its soak time is over", wave)
	case rules.needsApprovalAfter() && len(v.in.Approvals) == 0:
		f.fail("R6: wave %d is complete without an approval", wave)
	case v.in.Strategy.unreachable == v1alpha1.UnreachableWait && v.count(wave, Unreachable) > 0:
		f.fail("R2: wave %d is complete without clusters that it waits for", wave)
	}
	last := status.SuccessTime.Add(rules.soak)
	if status.SuccessTime.Time.Before(v.in.Began) {
		last = latest(last, v.in.Began)
	} else if rules.soak == 0 {
		return
	}
	for i := range v.in.Clusters {
		if v.in.Clusters[i].Wave != wave || v.states[i] != Updated {
			continue
		}
		if handled, err := time.Parse(time.RFC3339, v.in.Clusters[i].Child.Handled); err != nil || handled.Before(last) || handled.After(v.in.Now) {
			f.fail("R2: wave %d is complete on what was seen of %s before %s", wave, v.in.Clusters[i].Name, last)
		}
	}
}

// checkWhy is R8: the reason is true.
func (f *fleet) checkWhy(v *view) {
	isTrue, known := whyChecks[v.out.Why]
	switch {
	case !known:
		f.fail("R8: %q is not in the list", v.out.Why)
	case !isTrue(v):
		f.fail("R8: it says %s: %v of %+v", v.out.Why, v.states, v.out.Waves)
	}
}

func (v *view) complete() bool { return v.out.Open == len(v.out.Waves) }

// moving is how many clusters of a wave are in flight, or begin now.
func (v *view) moving(wave int) int {
	found := 0
	for i := range v.in.Clusters {
		if _, started := v.started[v.in.Clusters[i].Name]; v.in.Clusters[i].Wave == wave && (started || v.out.states[i].inFlight) {
			found++
		}
	}
	return found
}

func (v *view) anyMoving() bool {
	for wave := range v.in.Strategy.Waves {
		if v.moving(wave) > 0 {
			return true
		}
	}
	return false
}

// isFull tells whether a wave has clusters that wait because too many are unavailable.
func (v *view) isFull(wave int) bool {
	size, unavailable, waiting := 0, 0, 0
	for i := range v.in.Clusters {
		if v.in.Clusters[i].Wave != wave {
			continue
		}
		size++
		_, started := v.started[v.in.Clusters[i].Name]
		switch {
		case started || !v.out.states[i].ready:
			unavailable++
		case v.states[i] == Pending:
			waiting++
		}
	}
	return waiting > 0 && unavailable >= max(min(v.in.Strategy.Waves[wave].maxUnavailable.value, size), 1)
}

// whyChecks tell whether a reason is true.
var whyChecks = map[string]func(*view) bool{
	v1alpha1.ReasonUpdating: func(v *view) bool { return !v.complete() && v.moving(v.out.Open) > 0 },
	v1alpha1.ReasonSoaking: func(v *view) bool {
		status := v.out.Waves[v.out.Open]
		return status.SuccessTime != nil && (len(v.out.Look) > 0 || v.in.Now.Before(status.SuccessTime.Add(v.in.Strategy.Waves[v.out.Open].soak)))
	},
	v1alpha1.ReasonApprovalPending: func(v *view) bool { return len(v.in.Approvals) == 0 },
	v1alpha1.ReasonOutsideWindow:   func(v *view) bool { return v.in.Strategy.hasWindows() },
	v1alpha1.ReasonSuspended:       func(v *view) bool { return v.in.Suspended },
	v1alpha1.ReasonHeld:            func(v *view) bool { return v.count(v.out.Open, Held) > 0 && v.moving(v.out.Open) == 0 },
	v1alpha1.ReasonNoClusterReachable: func(v *view) bool {
		return v.count(v.out.Open, Unreachable) > 0 && v.count(v.out.Open, Starting, Pending, Held, Updating) == 0
	},
	v1alpha1.ReasonNoClusterSucceeded: func(v *view) bool {
		return v.count(v.out.Open, Updated) == 0 && v.count(v.out.Open, Starting, Pending, Held, Updating) == 0
	},
	v1alpha1.ReasonMaxUnavailableReached: func(v *view) bool {
		for wave := range v.in.Strategy.Waves {
			if (v.in.Return || v.complete() || wave == v.out.Open) && v.isFull(wave) {
				return true
			}
		}
		return false
	},
	v1alpha1.ReasonMaxFailuresExceeded: func(v *view) bool {
		return v.halted() || v.in.Strategy.unreachable == v1alpha1.UnreachableFail
	},
	v1alpha1.ReasonRollingBack:      func(v *view) bool { return v.out.Reject || v.in.Return && v.anyMoving() },
	v1alpha1.ReasonRevisionRejected: func(v *view) bool { return v.in.Return && !v.anyMoving() },
	v1alpha1.ReasonCatchingUp:       func(v *view) bool { return v.complete() && v.anyMoving() },
	v1alpha1.ReasonComplete: func(v *view) bool {
		return v.complete() && !v.anyMoving() && !slices.Contains(v.states, Pending)
	},
}
