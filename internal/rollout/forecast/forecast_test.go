// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/rollout"
)

// TestForecastIsWhatTheRunDoes compares a forecast with the decisions of the run itself.
func TestForecastIsWhatTheRunDoes(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	strategy, err := rollout.ReadStrategy(&v1alpha1.RolloutStrategy{
		Waves: []v1alpha1.RolloutWave{
			{Name: "canary", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": "canary"}}, Approval: v1alpha1.WaveApprovalAfter},
			{Name: "prod", Selector: metav1.LabelSelector{}, Approval: v1alpha1.WaveApprovalBefore, MaxConcurrency: new(intstr.FromString("50%")), MaxFailures: new(intstr.FromInt32(1))},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	current := rollout.Revision{Name: "one", Digest: "sha256:one", Content: "c1"}
	in := &rollout.Input{
		Namespace: "fleet", Rollout: "shop", Now: now, Strategy: strategy, Suspended: true, Run: 3,
		Update: rollout.Revision{Name: "two", Digest: "sha256:two", Content: "c2"}, Current: &current,
	}
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		in.Clusters = append(in.Clusters, rollout.Fact{Name: name, Wave: min(i, 1), Wanted: "h2", WantedCurrent: "h1", Child: &rollout.Child{
			Revision: "one", SpecHash: "h1", Generation: 1, ObservedGeneration: 1, Ready: true, Outcome: v1alpha1.OutcomeHealthy, Tried: 1, Content: "c1",
		}})
	}
	forecast := Of(in)
	if !in.Suspended || in.Clusters[0].Child.Revision != "one" {
		t.Error("the forecast changed its input")
	}
	if first := forecast[0].First; !slices.Equal(first, []string{"a"}) {
		t.Errorf("canary begins with %v, want a", first)
	}
	if got := forecast[1]; got.Clusters != 4 || got.AtOnce != 2 || got.Failures != 1 || !slices.Equal(got.First, []string{"b", "c"}) {
		t.Errorf("prod: got %+v, want 4 clusters, 2 at once, 1 failure, first b and c", got)
	}

	// The run itself: the canary is updated, and waits for the approval that was forecast.
	run := *in
	run.Suspended = false
	if before := forecast[0].Before; before != "" {
		t.Errorf("canary needs no approval to start, got %s", before)
	}
	run.Clusters[0].Child = landed(in, &run.Clusters[0])
	waits := rollout.Decide(&run)
	if waits.Why != v1alpha1.ReasonApprovalPending || waits.Waves[0].Plan != forecast[0].After || forecast[0].After == "" {
		t.Errorf("after canary: %s with plan %q, forecast %q", waits.Why, waits.Waves[0].Plan, forecast[0].After)
	}
	run.Approvals = []rollout.Approval{{Name: "yes", Plan: forecast[0].After}}
	run.Waves = waits.Waves
	waits = rollout.Decide(&run)
	if waits.Open != 1 || waits.Waves[1].Plan != forecast[1].Before || forecast[1].Before == "" {
		t.Errorf("before prod: wave %d with plan %q, forecast %q", waits.Open, waits.Waves[1].Plan, forecast[1].Before)
	}
	run.Approvals = append(run.Approvals, rollout.Approval{Name: "also", Plan: forecast[1].Before})
	run.Waves = waits.Waves
	var starts []string
	for _, start := range rollout.Decide(&run).Starts {
		starts = append(starts, start.Cluster)
	}
	if !slices.Equal(starts, forecast[1].First) {
		t.Errorf("prod began with %v, forecast %v", starts, forecast[1].First)
	}
}
