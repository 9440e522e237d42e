// SPDX-License-Identifier: Apache-2.0

package announce

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/plural"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/identity"
)

// ApprovalMessage says which approval the open wave waits for.
func ApprovalMessage(rolloutName string, decision *rollout.Decision) string {
	if decision.Open >= len(decision.Waves) {
		return "clusters of complete waves wait for an approval"
	}
	wave := &decision.Waves[decision.Open]
	what := "to start its clusters"
	if wave.SuccessTime != nil {
		what = "to complete it"
	}
	if decision.Denied {
		return fmt.Sprintf("the plan %s of wave %s is denied: publish another revision, or delete the BundleApproval that denies it", wave.Plan, wave.Name)
	}
	return fmt.Sprintf("wave %s waits for an approval %s: create a BundleApproval with rollout %s and plan %s", wave.Name, what, rolloutName, wave.Plan)
}

// Message says what a rollout does or waits for. duplicates are clusters that another name stands for, too, and leaving those that are no
// longer selected.
func Message(object *v1alpha1.BundleRollout, decision *rollout.Decision, duplicates map[string]bool, leaving map[string]identity.Leaving) string {
	status := &object.Status
	name := status.UpdateRevision.Name
	if version := status.UpdateRevision.Revision; version != "" {
		name += " (" + version + ")"
	}
	parts := []string{fmt.Sprintf("revision %s: %s clusters updated", name, status.Progress)}
	if status.Wave != "" {
		parts = append(parts, "wave "+status.Wave)
	}
	if say := Sayings[decision.Why]; say != "" {
		parts = append(parts, say)
	}
	if len(duplicates) > 0 {
		names := slices.Sorted(maps.Keys(duplicates))
		parts = append(parts, "held, because the same cluster has another name as well: "+strings.Join(names, ", ")+" (select each cluster once)")
	}
	for _, name := range slices.Sorted(maps.Keys(leaving)) {
		if waits := leaving[name].Waits; waits != "" {
			parts = append(parts, waits)
			break // the others wait for the like
		}
	}
	if rebuilt := decision.Rebuilt; len(rebuilt) > 0 {
		parts = append(parts, fmt.Sprintf("%s another one than before, such as %s: %s", plural.Are(len(rebuilt), "cluster"), rebuilt[0].Cluster, rebuilt[0].Remedy))
	}
	if decision.Why == v1alpha1.ReasonApprovalPending {
		parts = append(parts, ApprovalMessage(object.Name, decision))
	}
	if !decision.Until.IsZero() {
		parts = append(parts, "until "+decision.Until.UTC().Format(time.RFC3339))
	}
	isFailed := func(one v1alpha1.RolloutClusterProblem) bool { return one.State == string(rollout.Failed) }
	if at := slices.IndexFunc(status.Worst, isFailed); at >= 0 {
		worst, count := status.Worst[at], status.Clusters
		parts = append(parts, fmt.Sprintf("failed: %d, such as %s (%s)", count.Failed, worst.Cluster, worst.Reason))
	}
	return strings.Join(parts, "; ")
}
