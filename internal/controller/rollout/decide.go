// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/controller/rollout/removal"
	"github.com/satchel-dev/satchel/internal/controller/rollout/rendered"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/rollout/identity"
)

// decide decides what to do next, and changes the status to it. Nothing is written yet.
func (r *Reconciler) decide(ctx context.Context, s *state) (pipeline.Outcome, error) {
	began := time.Now()
	course := s.course()
	if rollout.Steer(course) || course.Retry {
		s.memory.refused = map[refusal]string{}
	}
	status := &s.object.Status
	if status.UpdateRevision == nil {
		return pipeline.Stop, s.waiting()
	}
	update, err := r.needed(ctx, s, status.UpdateRevision.Name)
	if err != nil {
		return pipeline.Stop, err
	}
	var current *rendered.Revision
	if status.CurrentRevision != nil {
		if current, err = r.needed(ctx, s, status.CurrentRevision.Name); err != nil {
			return pipeline.Stop, err
		}
	}
	if err := r.readOwnInputs(ctx, s, update, current); err != nil {
		return pipeline.Stop, err
	}
	facts, err := r.facts(ctx, s, update, current)
	if err != nil {
		return pipeline.Stop, err
	}
	s.input = rollout.Input{
		Namespace: s.object.Namespace, Rollout: s.object.Name, UID: string(s.object.UID), Now: s.now, Began: s.memory.began,
		Strategy: s.strategy, Suspended: s.object.Spec.Suspend, Update: identify(update), Return: rollout.Returns(status),
		Run: status.Run, Starts: status.Starts, Starting: status.Starting, Waves: status.Waves, Clusters: facts,
		Approvals: s.approvals.ForDecision(), Abandon: s.object.Spec.Removal.WhenClusterGone == v1alpha1.GoneClusterAbandon, Known: s.unlisted == nil,
	}
	if current != nil {
		one := identify(current)
		s.input.Current = &one
	}
	s.decision = rollout.Decide(&s.input)
	r.Figures.Decided(time.Since(began))
	s.take(course)
	return pipeline.Continue, r.decideRemoval(s)
}

// waiting is why there is no revision yet.
func (s *state) waiting() error {
	switch {
	case s.refused != nil:
		return s.refused
	case s.awaits != nil:
		return s.awaits
	}
	return nil
}

// course is what the status follows.
func (s *state) course() rollout.Course {
	requested, limit := pipeline.Requested(s.object), int32(5) // the default of the CRD
	if s.object.Spec.HistoryLimit != nil {
		limit = *s.object.Spec.HistoryLimit
	}
	wanted := s.wanted
	if s.refused != nil {
		wanted = nil
	}
	return rollout.Course{
		HistoryLimit: int(limit), Approvals: s.approvals.ForDecision(),
		Status: &s.object.Status, Wanted: wanted,
		Retry: s.object.Status.ObservedGeneration != s.object.Generation || requested != "" && requested != s.object.Status.LastHandledReconcileAt,
		Now:   metav1.NewTime(s.now),
	}
}

// needed is a revision without which nothing can be decided.
func (r *Reconciler) needed(ctx context.Context, s *state, name string) (*rendered.Revision, error) {
	found, err := r.load(ctx, s, name)
	if err == nil && found == nil {
		err = stalledBy(v1alpha1.ReasonRevisionNotFound, "controllerrevision %s/%s-%s, which holds a revision of this rollout, does not exist any more: restore it", s.object.Namespace, s.object.Name, name)
	}
	return found, err
}

// identify is a revision for a decision.
func identify(v *rendered.Revision) rollout.Revision {
	return rollout.Revision{Name: v.Name, Digest: v.Digest, Content: v.Data.Content}
}

// take changes the status to the decision.
func (s *state) take(course rollout.Course) {
	status := &s.object.Status
	status.Waves = s.decision.Waves
	status.Clusters = rollout.Counts(&s.input, s.decision)
	status.Worst = rollout.Worst(&s.input, s.decision)
	status.Progress = rollout.Progress(status.Clusters)
	status.Wave = rollout.OpenWave(s.decision)
	rollout.Settle(course, s.decision)
	if starts := s.decision.Starts; len(starts) > 0 {
		status.Starting = slices.Concat(status.Starting, starts)
		status.Starts = starts[len(starts)-1].Start
	}
	if s.decision.Reject || s.decision.Returned {
		s.again = time.Second // the next decision follows from this one
	}
}

// decideRemoval decides which clusters that are no longer selected are removed.
func (r *Reconciler) decideRemoval(s *state) error {
	leavers := removal.Leavers(s.children, s.clusters, s.leaving, s.object.UID)
	status := &s.object.Status
	status.Clusters.Leaving = int32(len(leavers)) //nolint:gosec // at most some thousands
	decided, err := rollout.DecideRemoval(&rollout.RemovalInput{
		Namespace: s.object.Namespace, Rollout: s.object.Name, UID: string(s.object.UID), Now: s.now, Strategy: s.strategy, Removal: &s.object.Spec.Removal,
		Known: s.unlisted == nil, Selected: len(s.clusters), Leavers: leavers, Status: status.Removal,
		Approvals: s.approvals.ForDecision(),
	})
	if err != nil {
		return &failure{reason: v1alpha1.ReasonInvalidSpec, stalled: true, err: err}
	}
	if s.object.Spec.Suspend {
		return nil // a rollout that is suspended removes nothing
	}
	s.removal = decided
	s.decision.Recheck = identity.Recheck(s.leaving, s.now, s.decision.Recheck)
	status.Removal = decided.Status
	return nil
}

// record writes the status before anything is carried out. Where it was changed by another process meanwhile, nothing is.
func (r *Reconciler) record(ctx context.Context, s *state) (pipeline.Outcome, error) {
	s.report()
	if err := r.write(ctx, s); err != nil {
		return pipeline.Stop, err
	}
	r.Figures.Started(len(s.decision.Starts))
	return pipeline.Continue, nil
}
