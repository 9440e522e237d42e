// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout"
)

// Outlook is what a decision finds about a wave when it opens, if all waves before it succeed.
type Outlook struct {
	Wave     string
	Clusters int
	// AtOnce and Failures are maxConcurrency and maxFailures for so many clusters.
	AtOnce   int
	Failures int
	Soak     time.Duration
	// Before and After are the plans that a BundleApproval has to name to start the wave, and to complete it; empty where none is needed.
	Before string
	After  string
	// Opens is when a window permits starts, if that is later than now; Never tells that none does.
	Opens time.Time
	Never bool
	// First are the clusters that are started first.
	First []string
}

// Of is what a run does, wave by wave, by the same decisions as the run itself. It begins with the waves of the input that are not
// complete; a suspended rollout is treated as if it went on.
func Of(in *rollout.Input) []Outlook {
	var all []Outlook
	for i := range in.Strategy.Waves {
		at := openedAt(in, i)
		one := Outlook{Wave: in.Strategy.Waves[i].Name, Soak: in.Strategy.Waves[i].Soak()}
		for k := range at.Clusters {
			if at.Clusters[k].Wave == i {
				one.Clusters++
			}
		}
		one.AtOnce = in.Strategy.Waves[i].MaxConcurrency(one.Clusters)
		one.Failures = in.Strategy.Waves[i].MaxFailures(one.Clusters)
		if one.Clusters > 0 {
			lookInto(at, i, &one)
		}
		all = append(all, one)
	}
	return all
}

// lookInto decides about a wave that has just opened: with its gates, without them, and when it has succeeded.
func lookInto(in *rollout.Input, wave int, one *Outlook) {
	gated := rollout.Decide(in)
	if gated.Open == wave {
		one.Opens = gated.Until
	}
	if gated.Open == wave && in.Strategy.Waves[wave].NeedsApprovalBefore() { // else it is the plan of its end
		one.Before = gated.Waves[wave].Plan
	}
	one.Never = gated.Open == wave && gated.Why == v1alpha1.ReasonOutsideWindow && gated.Until.IsZero()

	free := *in
	free.Strategy = in.Strategy.WithoutGates()
	for _, start := range rollout.Decide(&free).Starts {
		if slices.ContainsFunc(in.Clusters, func(f rollout.Fact) bool { return f.Name == start.Cluster && f.Wave == wave }) {
			one.First = append(one.First, start.Cluster)
		}
	}
	if !in.Strategy.Waves[wave].NeedsApprovalAfter() {
		return
	}
	done := openedAt(in, wave+1)
	done.Waves[wave].CompletionTime = nil
	done.Waves[wave].SuccessTime = &metav1.Time{Time: in.Now.Add(-in.Strategy.Waves[wave].Soak())}
	one.After = rollout.Decide(done).Waves[wave].Plan
}

// openedAt is the input when all waves before one are complete: their clusters are ready with the revision, and nothing is in flight.
func openedAt(in *rollout.Input, wave int) *rollout.Input {
	at := *in
	at.Suspended = false
	at.Return = false
	at.Starting = nil
	at.Clusters = slices.Clone(in.Clusters)
	at.Waves = make([]v1alpha1.RolloutWaveStatus, len(in.Strategy.Waves))
	for i := range at.Waves {
		at.Waves[i].Name = in.Strategy.Waves[i].Name
		if i < wave {
			at.Waves[i].SuccessTime = &metav1.Time{Time: in.Now}
			at.Waves[i].CompletionTime = &metav1.Time{Time: in.Now}
		}
	}
	for i := range at.Clusters {
		fact := &at.Clusters[i]
		switch {
		case fact.Wave >= 0 && fact.Wave < wave:
			fact.Invalid = ""
			fact.Duplicate = false
			fact.UnreachableSince = time.Time{}
			fact.Child = landed(in, fact)
		case fact.Child != nil && fact.Child.Stalled: // the failure of another run stops no forecast
			child := *fact.Child
			child.Stalled = false
			fact.Child = &child
		}
	}
	return &at
}

// landed is the BundleDeployment of a cluster on which the revision is ready.
func landed(in *rollout.Input, fact *rollout.Fact) *rollout.Child {
	return &rollout.Child{
		Revision: in.Update.Name, SpecHash: fact.Wanted, Generation: 1, ObservedGeneration: 1, Ready: true,
		Outcome: v1alpha1.OutcomeHealthy, Tried: 1, Content: in.Update.Content, Handled: in.Now.Format(time.RFC3339),
	}
}
