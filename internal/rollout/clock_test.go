// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// setClock sets the clock forward or back, of all processes. One that notices it begins again; it does not notice some seconds.
func (f *fleet) setClock() {
	steps := []time.Duration{3 * time.Second, 10 * time.Minute, time.Hour, 24 * time.Hour}
	by := steps[f.random.IntN(len(steps))]
	if f.chance(50) {
		by = -by
	}
	f.now = f.now.Add(by)
	f.clockSets++
	if by > 0 {
		f.gained += by
	}
	f.wentBack = f.wentBack || by < 0
	if by.Abs() < time.Minute {
		return
	}
	for _, p := range f.processes {
		p.began, p.beganAt = f.now, f.passed
	}
}

// slack is what clocks that are corrected by some seconds may make of a time.
const slack = 30 * time.Second

// checkOverdue is R35: a cluster is overdue only when so much time has passed, whatever the clock says, while the process has watched it.
func (f *fleet) checkOverdue(p *process, v *view) {
	for i := range v.in.Clusters {
		state, reason, _ := v.out.State(i)
		if state != Failed || reason != v1alpha1.ReasonOverdue {
			continue
		}
		m := f.member(v.in.Clusters[i].Name)
		seen := m.versions[p.seen[m.name]]
		since := seen.startedAt
		if seen.child.wasHealthy(contentOf(seen.child.Revision)) {
			since = seen.changedAt
		}
		if passed := f.passed - max(since, p.beganAt); passed < v.in.Strategy.progressDeadline-slack {
			f.fail("R35: %s is overdue after %s", m.name, passed)
		}
	}
}

// checkSoak is R35: a wave soaks for as long as it has to, but for time by which the clock was set forward.
func (f *fleet) checkSoak(v *view, wave int, key string) {
	status := &v.out.Waves[wave]
	if v.count(wave, everyState...) == 0 || v.in.Current != nil && v.in.Current.Digest == v.in.Update.Digest {
		return // none is left, or all were brought back
	}
	if succeeded, known := f.succeeded[key]; !known && status.SuccessTime != nil {
		f.succeeded[key] = f.passed + f.gained
	} else if known && status.CompletionTime != nil && !f.completed[key] {
		if soaked := f.passed + f.gained - succeeded; soaked < v.in.Strategy.Waves[wave].soak-slack {
			f.fail("R35: wave %d has soaked for %s", wave, soaked)
		}
	}
}

// TestR35ClockWentBack decides about what was recorded by a clock that was set back since: the times count from now, or from when the process
// noticed it, and nothing waits until the clock shows the former time again.
func TestR35ClockWentBack(t *testing.T) {
	const day = 24 * time.Hour
	later := &metav1.Time{Time: testStart.Add(day)}
	soaking := func() *Input {
		in := unreachableFleet(t)
		in.Clusters = in.Clusters[:1]
		in.Began = testStart
		in.Strategy.Waves[0].soak = time.Hour
		in.Waves = []v1alpha1.RolloutWaveStatus{{Name: "one", StartTime: later, SuccessTime: later}, {Name: "two"}}
		return in
	}
	in := soaking()
	out := Decide(in)
	if got := out.Waves[0]; !got.SuccessTime.Time.Equal(testStart) || !got.StartTime.Time.Equal(testStart) || out.Recheck != time.Hour {
		t.Errorf("the wave soaks from %s, again in %s", got.SuccessTime, out.Recheck)
	}
	in.Waves, in.Now = out.Waves, testStart.Add(time.Hour)
	in.Clusters[0].Child.Handled = later.UTC().Format(time.RFC3339)
	if out = Decide(in); len(out.Look) != 1 {
		t.Errorf("what the cluster was asked for before counts as an answer: %+v", out.Waves[0])
	}
	in.Clusters[0].Child.Handled = out.LookToken
	if out = Decide(in); out.Waves[0].CompletionTime == nil {
		t.Errorf("the wave is not complete: %s", out.Why)
	}

	for name, tc := range map[string]struct {
		reason string
		change func(c *Child)
		at     time.Duration // after the clock was set back
		want   State
	}{
		"started":          {reason: "it is ready for minReady", change: func(c *Child) { c.Started = later.Time }, at: 30 * time.Second, want: Updated},
		"started, at once": {reason: "for how long is not known", change: func(c *Child) { c.ReadySince = later.Time }, at: 29 * time.Second, want: Updating},
		"of another clock": {reason: "which is a second ahead", change: func(c *Child) { c.ReadySince = testStart.Add(31 * time.Second) }, at: 30 * time.Second, want: Updating},
		"overdue": {reason: "it has 15 minutes", change: func(c *Child) {
			c.Ready, c.Outcome, c.Started = false, "", later.Time
		}, at: 15 * time.Minute, want: Failed},
		"not overdue": {reason: "a second before", change: func(c *Child) {
			c.Ready, c.Outcome, c.Started = false, "", later.Time
		}, at: 15*time.Minute - time.Second, want: Updating},
	} {
		t.Run(name, func(t *testing.T) {
			fact := updatedFact()
			tc.change(fact.Child)
			in := &Input{Now: testStart.Add(tc.at), Began: testStart, Update: testRevision("r2"), Strategy: defaultStrategy(t), Clusters: []Fact{fact}}
			if got, _, _ := Decide(in).State(0); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestR35Unreachable counts from when the process noticed that its clock was set.
func TestR35Unreachable(t *testing.T) {
	for name, since := range map[string]time.Time{"back": testStart.Add(time.Hour), "forward": testStart.Add(-time.Hour)} {
		in := unreachableFleet(t)
		in.Began, in.Clusters[1].UnreachableSince = testStart, since
		for at, want := range map[time.Duration]State{5*time.Minute - time.Second: Pending, 5 * time.Minute: Unreachable} {
			in.Now = testStart.Add(at)
			if got, _, _ := Decide(in).State(1); got != want {
				t.Errorf("set %s, after %s: got %s, want %s", name, at, got, want)
			}
		}
	}
}
