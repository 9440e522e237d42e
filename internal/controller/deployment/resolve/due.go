// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/dependency"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Depend holds a new revision or spec back until the deployments of spec.dependsOn are
// ready. The applied revision is reconciled regardless: a dependency that is temporarily
// not ready does not affect it.
func (st *Stage) Depend(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	if in.RulesErr != nil {
		return pipeline.Stop, in.RulesErr
	}
	key, wanted := in.Key(), in.Object.Spec.DependsOn
	if len(wanted) == 0 {
		st.Dependencies.Set(key, nil)
		return pipeline.Continue, nil
	}
	names := map[string]bool{}
	for _, dependency := range wanted {
		names[dependency.Name] = true
	}
	st.Dependencies.Set(key, names) // before the first read: later changes wake the deployment
	others, err := dependency.Upstream(ctx, st.Reader, in.Object)
	if err != nil {
		return pipeline.Stop, err
	}
	if cycle := dependency.CycleThrough(key.Name, others.DependsOn(in.Object)); cycle != nil {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonDependencyCycle, Stalled: true, Err: fmt.Errorf(
			"spec.dependsOn has a cycle: %s: remove one of these dependencies", strings.Join(cycle, "→"))}
	}
	if !in.Resolved.AppliedAsIs(in.Subject) {
		if err := dependency.Lacking(ctx, in.Object, others, in.Expressions); err != nil {
			return pipeline.Stop, err
		}
	}
	st.Dependencies.Set(key, nil)
	return pipeline.Continue, nil
}

// Due determines whether this reconcile compares the objects with the cluster.
func (st *Stage) Due(ctx context.Context, in *Input) error {
	news, err := st.newlyDecided(ctx, in)
	if err != nil {
		return err
	}
	served := st.Kinds.Came(in.Key())
	in.Resolved.Due = in.full() || served || news
	in.Resolved.Routine = in.Resolved.Due && !served && !news && in.routine()
	if !in.Resolved.Due && in.overInterval() {
		in.Note.Checked = in.Now // only health is checked
	}
	return nil
}

// newlyDecided tells whether a decision about a held prune was made or withdrawn since the status was written.
func (st *Stage) newlyDecided(ctx context.Context, in *Input) (bool, error) {
	if in.Note.Planned.Held == nil {
		return false, nil
	}
	return st.Approvals.Changed(ctx, in.Object, in.Before, in.Now)
}

// full tells whether the objects must be compared with the cluster: it was requested,
// the interval is over, or an object was deleted since. An object that is deleted again
// and again is recreated only after the retry interval.
func (in *Input) full() bool {
	checked := in.Now.Sub(in.Note.Checked)
	leavesDrift := effective.DriftMode(&in.Object.Spec) != v1alpha1.DriftEnabled
	return !in.Note.Known || in.Note.Attempt != in.Resolved.Attempt(in.Subject) ||
		in.overInterval() && in.compares() ||
		in.Note.Health.Missing && !leavesDrift && checked >= in.BackgroundRetryInterval() ||
		!in.Note.Renew.IsZero() && !in.Now.Before(in.Note.Renew)
}

// routine tells that the last comparison was a complete one with the same input, and that there is no other reason for the next
// one than the interval or a request.
func (in *Input) routine() bool {
	last := in.Note.Attempt
	last.Requested = pipeline.Requested(in.Object)
	return in.Note.Known && last == in.Resolved.Attempt(in.Subject) && in.Note.Planned.Steady && in.Resolved.AppliedAsIs(in.Subject) &&
		in.Resolved.Rejected == nil && !in.Resolved.Lifted && !in.Resolved.Unapproved &&
		in.Note.Renew.IsZero() && in.Note.Applying.Waits.IsZero() && !in.Note.Health.Missing && len(in.Note.Planned.Conflicts) == 0
}

// overInterval tells that the interval since the last comparison is over.
func (in *Input) overInterval() bool {
	return in.Now.Sub(in.Note.Checked) >= effective.Interval(&in.Object.Spec)*9/10
}

// compares tells whether the objects are compared with the cluster at the interval. If
// drift is neither corrected nor reported, only their health is checked, once everything
// is applied and pruned.
func (in *Input) compares() bool {
	return effective.DriftMode(&in.Object.Spec) != v1alpha1.DriftNone || !in.Resolved.AppliedAsIs(in.Subject) || len(in.Note.Planned.Prune) > 0
}
