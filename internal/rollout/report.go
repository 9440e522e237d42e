// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Counts are status.clusters of a decision, without the clusters that leave.
func Counts(in *Input, decision *Decision) *v1alpha1.RolloutClusterCounts {
	counts := &v1alpha1.RolloutClusterCounts{}
	for i := range in.Clusters {
		if in.Clusters[i].Wave < 0 {
			counts.Unmatched++
			continue
		}
		counts.Total++
		if child := in.Clusters[i].Child; child != nil && child.Ready {
			counts.Ready++
		}
		switch decision.states[i].state {
		case Updated:
			counts.Updated++
		case Starting, Updating:
			counts.Updating++
		case Failed:
			counts.Failed++
		case Unreachable:
			counts.Unreachable++
		case Held:
			counts.Held++
		case Pending:
			counts.Pending++
		}
	}
	return counts
}

// Worst are the clusters of a decision that failed, cannot be reached or were rebuilt, those for the longest time first, at most MaxWorst.
func Worst(in *Input, decision *Decision) []v1alpha1.RolloutClusterProblem {
	var bad []int
	remedies := map[string]string{}
	for _, one := range decision.Rebuilt {
		remedies[one.Cluster] = one.Remedy
	}
	for i := range in.Clusters {
		state := decision.states[i].state
		if in.Clusters[i].Wave >= 0 && (state == Failed || state == Unreachable || remedies[in.Clusters[i].Name] != "") {
			bad = append(bad, i)
		}
	}
	slices.SortFunc(bad, func(a, b int) int {
		return cmp.Or(decision.states[a].since.Compare(decision.states[b].since), cmp.Compare(in.Clusters[a].Name, in.Clusters[b].Name))
	})
	var worst []v1alpha1.RolloutClusterProblem
	for _, i := range bad[:min(len(bad), v1alpha1.MaxWorst)] {
		fact, seen := &in.Clusters[i], &decision.states[i]
		problem := v1alpha1.RolloutClusterProblem{
			Cluster: fact.Name, State: string(seen.state), Reason: seen.reason, StartTime: timeOrNil(seen.since),
			Message: cmp.Or(remedies[fact.Name], fact.Invalid),
		}
		if fact.Wave < len(in.Strategy.Waves) {
			problem.Wave = in.Strategy.Waves[fact.Wave].Name
		}
		if problem.Message == "" && fact.Child != nil {
			problem.Message = fact.Child.Message
		}
		problem.Message = shorten(problem.Message)
		worst = append(worst, problem)
	}
	return worst
}

// shorten cuts a message to MaxWorstMessage bytes, between characters.
func shorten(text string) string {
	text = strings.ToValidUTF8(text, "")
	if len(text) <= v1alpha1.MaxWorstMessage {
		return text
	}
	const dots = "..."
	end := v1alpha1.MaxWorstMessage - len(dots)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}

// Progress is status.progress, such as 12/40.
func Progress(counts *v1alpha1.RolloutClusterCounts) string {
	return fmt.Sprintf("%d/%d", counts.Updated, counts.Total)
}

// OpenWave is status.wave, such as 2/4 prod-eu; empty when all waves are complete.
func OpenWave(decision *Decision) string {
	if decision.Open >= len(decision.Waves) {
		return ""
	}
	return fmt.Sprintf("%d/%d %s", decision.Open+1, len(decision.Waves), decision.Waves[decision.Open].Name)
}
