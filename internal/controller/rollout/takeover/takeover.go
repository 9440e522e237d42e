// SPDX-License-Identifier: Apache-2.0

// Package takeover marks the BundleDeployments of rollouts that need approvals, and takes over those of former rollouts. What needs an
// approval is decided in internal/rollout/takeover.
package takeover

import (
	"context"
	"fmt"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/rollout/approval"
	"github.com/satchel-dev/satchel/internal/controller/rollout/removal"
	"github.com/satchel-dev/satchel/internal/plural"
	"github.com/satchel-dev/satchel/internal/rollout/takeover"
)

// Keeper keeps the marks of the BundleDeployments of one rollout.
type Keeper struct {
	Writer  removal.Writer
	Rollout *v1alpha1.BundleRollout
	// Children are the BundleDeployments of the rollout, by cluster.
	Children map[string]*v1alpha1.BundleDeployment
}

// Outcome is what came of a takeover.
type Outcome struct {
	// Status is for the status of the rollout; nil unless it has to wait.
	Status *v1alpha1.RolloutTakeoverStatus
	// Message says what it waits for.
	Message string
	// Denied tells that an approver refused.
	Denied bool
	// Used is the approval by which BundleDeployments were taken over; empty if there was none.
	Used string
}

// Keep decides about the BundleDeployments of a former rollout, and marks all, unless an approver has to decide first.
func (k Keeper) Keep(ctx context.Context, approvals approval.Decisions, now time.Time) (Outcome, error) {
	marks := map[string]string{}
	for cluster, child := range k.Children {
		marks[cluster] = child.Annotations[v1alpha1.RolloutGatesAnnotation]
	}
	decided, err := takeover.Decide(k.Rollout, marks, approvals.ForDecision(), now)
	switch {
	case err != nil:
		return Outcome{}, err
	case decided.Waits():
		return k.waits(decided), nil
	}
	return Outcome{Used: decided.Approval}, k.mark(ctx, func(string) bool { return true })
}

func (k Keeper) waits(decided takeover.Decision) Outcome {
	//nolint:gosec // at most some thousands
	out := Outcome{Status: &v1alpha1.RolloutTakeoverStatus{Clusters: int32(len(decided.Clusters)), Plan: decided.Plan}, Denied: decided.Denied}
	which := fmt.Sprintf("%s of a former rollout %s, of which waves needed an approval", plural.Of(len(decided.Clusters), "bundledeployment"), k.Rollout.Name)
	if out.Denied {
		out.Message = "an approver denied to take over " + which + ": create the rollout with its former waves and clusters, or under another name"
		return out
	}
	out.Message = fmt.Sprintf("taking over %s, with other waves or clusters, needs an approval of the plan %s: run satchel rollout approve %s takeover -n %s, or restore the former waves and clusters",
		which, decided.Plan, k.Rollout.Name, k.Rollout.Namespace)
	return out
}

// MarkOwn marks those that have no mark of a former rollout: a rollout that waits for an approver may be deleted.
func (k Keeper) MarkOwn(ctx context.Context) error {
	return k.mark(ctx, func(mark string) bool { return mark == "" || takeover.IsOwn(k.Rollout, mark) })
}

// mark marks the BundleDeployments with marks that may be replaced.
func (k Keeper) mark(ctx context.Context, replaces func(mark string) bool) error {
	mark, err := takeover.Mark(k.Rollout)
	if err != nil {
		return err
	}
	for _, child := range k.Children {
		if was := child.Annotations[v1alpha1.RolloutGatesAnnotation]; was == mark || !replaces(was) || !child.DeletionTimestamp.IsZero() {
			continue
		}
		if err := k.Writer.Annotate(ctx, child, v1alpha1.RolloutGatesAnnotation, mark); err != nil {
			return err
		}
	}
	return nil
}
