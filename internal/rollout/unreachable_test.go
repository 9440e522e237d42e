// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// unreachableFleet has two waves. In the first one, a has r3, and b was started with r2, and cannot be reached since before that had ended.
func unreachableFleet(t *testing.T) *Input {
	t.Helper()
	wave := func(name string) v1alpha1.RolloutWave {
		return v1alpha1.RolloutWave{Name: name, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"wave": name}}}
	}
	strategy, err := ReadStrategy(&v1alpha1.RolloutStrategy{Waves: []v1alpha1.RolloutWave{wave("one"), wave("two")}, UnmatchedClusters: v1alpha1.UnmatchedExclude})
	if err != nil {
		t.Fatal(err)
	}
	member := func(name, revision string) Fact {
		fact := updatedFact()
		fact.Name, fact.Wanted, fact.WantedCurrent = name, "v1:r3", "v1:r1"
		fact.Child.Revision, fact.Child.SpecHash, fact.Child.Content = revision, "v1:"+revision, contentOf(revision)
		return fact
	}
	in := &Input{
		Now: testStart, Began: testStart.Add(-time.Hour), Strategy: strategy, Update: testRevision("r3"), Current: new(testRevision("r1")), Run: 3, Starts: 9,
		Clusters: []Fact{member("a", "r3"), member("b", "r2"), member("c", "r1")},
	}
	in.Clusters[2].Wave = 1
	b := &in.Clusters[1]
	b.UnreachableSince = testStart.Add(-time.Hour)
	b.Child.Ready, b.Child.Reason, b.Child.Tried, b.Child.Outcome = false, v1alpha1.ReasonClusterUnreachable, 2, v1alpha1.OutcomeHealthy
	return in
}

// TestR30OutdatedStart is about a cluster that was started before it could not be reached any more: the start moves on with its wave.
func TestR30OutdatedStart(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(in *Input, b *Fact)
		want   string // the revision that b is started with; empty: it is not
	}{
		"superseded":        {reason: "it would get r2 when it is back", want: "r3"},
		"begun":             {reason: "it goes on with r2", change: func(_ *Input, b *Fact) { b.Child.Tried, b.Child.Outcome = 3, "" }, want: "r3"},
		"never applied":     {reason: "it is new", change: func(_ *Input, b *Fact) { b.Child.Tried, b.Child.Outcome = 0, "" }, want: "r3"},
		"landed":            {reason: "nothing happens when it is back", change: func(_ *Input, b *Fact) { b.Child.Tried = 3 }},
		"failed":            {reason: "as before", change: func(_ *Input, b *Fact) { b.Child.Tried, b.Child.Outcome = 3, v1alpha1.OutcomeRolledBack }},
		"the newest":        {reason: "it has it", change: func(_ *Input, b *Fact) { b.Child.Revision, b.Child.SpecHash = "r3", "v1:r3" }},
		"another spec":      {reason: "its labels changed", change: func(_ *Input, b *Fact) { b.Child.Revision = "r3" }, want: "r3"},
		"suspended":         {reason: "a person holds it", change: func(_ *Input, b *Fact) { b.Child.Suspended = true }},
		"no spec":           {reason: "none is begun with half a name", change: func(_ *Input, b *Fact) { b.Invalid = "no value" }},
		"rollout suspended": {reason: "nothing is started", change: func(in *Input, _ *Fact) { in.Suspended = true }},
		"outside":           {reason: "of the windows", change: func(in *Input, _ *Fact) { in.Strategy.setWindows(neverOpen) }},
		"too many fail":     {reason: "nothing is started", change: func(in *Input, _ *Fact) { in.Clusters[0].Child.Stalled = true }},
		"not for long":      {reason: "it has its place still, and is moved as one that can be reached", change: func(_ *Input, b *Fact) { b.UnreachableSince = testStart }, want: "r3"},
		"recorded": {reason: "it is being written", change: func(in *Input, _ *Fact) {
			in.Starting = []v1alpha1.RolloutStart{{Cluster: "b", Revision: "r3", Start: 9}}
		}},
		"no place":       {reason: "another one is in flight", change: func(in *Input, _ *Fact) { in.Clusters[0].Child.Generation = 4 }},
		"after others":   {reason: "a can be reached, and there is one place", change: func(in *Input, _ *Fact) { in.Clusters[0].Child.Revision, in.Clusters[0].Child.SpecHash = "r1", "v1:r1" }},
		"of a wave done": {reason: "it is late", change: func(in *Input, _ *Fact) { in.Waves = completed1(in) }, want: "r3"},
		"of a later wave": {reason: "its wave is not open: it gets the current revision", change: func(in *Input, b *Fact) {
			b.Wave, in.Clusters[0].Child.Generation = 1, 4
		}, want: "r1"},
		"of a later wave, at the current revision": {reason: "the newest one comes with its wave", change: func(in *Input, b *Fact) {
			b.Wave, in.Clusters[0].Child.Generation, b.Child.Revision, b.Child.SpecHash = 1, 4, "r1", "v1:r1"
		}},
		"in a return":                 {reason: "all go to the current revision", change: func(in *Input, _ *Fact) { in.Return = true; in.Clusters = in.Clusters[1:] }, want: "r1"},
		"in a return, at the current": {reason: "it has it", change: func(in *Input, b *Fact) { in.Return = true; b.Child.Revision, b.Child.SpecHash = "r1", "v1:r1" }},
	} {
		t.Run(name, func(t *testing.T) {
			in := unreachableFleet(t)
			if tc.change != nil {
				tc.change(in, &in.Clusters[1])
			}
			out := Decide(in)
			got := ""
			if at := slices.IndexFunc(out.Starts, func(s v1alpha1.RolloutStart) bool { return s.Cluster == "b" }); at >= 0 {
				got = out.Starts[at].Revision
			}
			if got != tc.want {
				t.Errorf("%s: b is started with %q, want %q: %+v, %s", tc.reason, got, tc.want, out.Starts, out.Why)
			}
		})
	}
}

// completed1 are waves of which the first is complete.
func completed1(in *Input) []v1alpha1.RolloutWaveStatus {
	at := &metav1.Time{Time: in.Now.Add(-time.Minute)}
	return []v1alpha1.RolloutWaveStatus{{Name: "one", StartTime: at, SuccessTime: at, CompletionTime: at}, {Name: "two"}}
}

// TestR30OutdatedStartWaits opens the window again: the wave goes on, and the start moves on.
func TestR30OutdatedStartWaits(t *testing.T) {
	in := unreachableFleet(t)
	in.Waves = completed1(in)
	evening := mustWindows(v1alpha1.RolloutWindow{Name: "evening", Kind: v1alpha1.WindowAllow, Schedule: "0 18 * * *", Duration: v1alpha1.Duration{Duration: time.Hour}})
	in.Strategy.setWindows(evening)
	out := Decide(in)
	opens := evening.Opening(in.Now)
	if len(out.Starts) > 0 || out.Recheck != opens.Sub(in.Now) {
		t.Fatalf("outside of the window: %+v, again in %s, want %s", out.Starts, out.Recheck, opens.Sub(in.Now))
	}
	in.Now = opens
	if out := Decide(in); len(out.Starts) != 2 {
		t.Errorf("in the window: %+v", out.Starts)
	}
}
