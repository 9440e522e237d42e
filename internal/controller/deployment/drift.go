// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ignore"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/spec"
)

// mostDrift bounds the list of drift in the status.
const mostDrift = 20

// ignoring are the rules that exclude fields from drift correction.
func (s *state) ignoring() (ignore.Rules, error) {
	rules, err := spec.Ignore(s.Object)
	if err != nil {
		return ignore.Rules{}, failure.Error{Reason: v1alpha1.ReasonPlanRefused, Stalled: true, Err: err}
	}
	return rules, nil
}

// leave removes the repairs from a plan, and records the differences where drift is
// reported.
func (r *Reconciler) leave(ctx context.Context, s *state, made *plan.Plan) error {
	var left []plan.Object
	for i := range made.Stages {
		for j := range made.Stages[i].Actions {
			action := &made.Stages[i].Actions[j]
			if action.Verb == plan.Repair {
				left = append(left, action.Object)
			}
			if action.Verb == plan.Repair || action.Verb == plan.Settle {
				action.Verb = plan.Unchanged
			}
		}
	}
	return r.explain(ctx, s, left)
}

// explain records which fields of the first objects differ, and which clients changed
// them.
func (r *Reconciler) explain(ctx context.Context, s *state, objects []plan.Object) error {
	s.decided.Drift.Compared = true
	if !s.Warns() {
		return nil
	}
	for _, object := range objects[:min(len(objects), mostDrift)] {
		difference, err := fieldmanager.Explain(ctx, s.resolved.Access.Client, s.Owner, object)
		if err != nil {
			return err
		}
		s.decided.Drift.Found = append(s.decided.Drift.Found, difference.String())
	}
	slices.Sort(s.decided.Drift.Found)
	return nil
}

// setDrift sets the drift found and the objects that are not watched. Drift is kept in
// the status until the next comparison, or until watches report that there is none.
func setDrift(s *state) {
	of := s
	if s.kept != nil {
		of = s.kept
	}
	status := &v1alpha1.DriftStatus{}
	if was := s.Object.Status.Drift; was != nil && s.Warns() {
		status.Found = was.Found
	}
	switch {
	case of.decided.Drift.Compared:
		status.Found = of.decided.Drift.Found
	case s.resolved.Found.Watched && len(s.resolved.Found.Drifted) == 0 || !s.Warns():
		status.Found = nil
	}
	status.Found = slices.Concat(status.Found, s.contested())
	for _, gap := range s.settled.Gaps {
		if len(status.AtInterval) < mostDrift {
			status.AtInterval = append(status.AtInterval, gap.String())
		}
	}
	s.Object.Status.Drift = nil
	if len(status.Found)+len(status.AtInterval) > 0 {
		s.Object.Status.Drift = status
	}
}

// emitDriftFound emits an event for drift that is not corrected, once while it stays
// the same.
func (r *Reconciler) emitDriftFound(s *state) {
	var before []string
	if was := s.Before.Status.Drift; was != nil {
		before = was.Found
	}
	if is := s.Object.Status.Drift; s.Warns() && is != nil && len(is.Found) > 0 && !slices.Equal(before, is.Found) {
		r.warning(s, "DriftFound", "Compare", "differs from the bundle, and is not corrected: "+strings.Join(is.Found, "; "))
	}
}
