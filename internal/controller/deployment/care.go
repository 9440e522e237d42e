// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/budget"
	"github.com/satchel-dev/satchel/internal/controller/conversion"
	"github.com/satchel-dev/satchel/internal/controller/report"
	"github.com/satchel-dev/satchel/internal/controller/step"
)

// care keeps the last applied revision from drifting, and its health known, while a newer
// one cannot be brought to the cluster, or while some objects of it cannot be planned. What
// is wrong with one object concerns no other.
func (r *Reconciler) care(ctx context.Context, s *state, err error) {
	if report.IsStale(err) || !declared(err).keepsApplied {
		return // decided on a stale copy, or failed where the last revision is touched already
	}
	if s.object.Status.LastAppliedRevision == "" || s.client == nil {
		return
	}
	if errors.Is(err, conversion.ErrPending) && s.applying() {
		return // it goes on in a moment, and would find undone what it did
	}
	last, found, readErr := readSnapshot(r.Snapshots, string(s.object.UID))
	if readErr == nil && !found {
		readErr = errors.New("what was applied last is not in the cache any more")
	}
	if readErr != nil {
		s.careErr = readErr
		return
	}
	kept := &state{
		object: s.object, before: s.before, stored: s.stored, owner: s.owner, home: s.home, previous: s.previous, client: s.client, now: s.now,
		rules: s.rules, room: s.room, hashKey: s.hashKey, wrappedKey: s.wrappedKey,
		due: true, keeping: true, desired: last.Objects, wanted: last.Certificates,
	}
	s.kept = kept
	kept.unapproved = awaitsApproval(err)
	if kept.client, s.careErr = r.caringClient(ctx, s, err); s.careErr != nil {
		return
	}
	s.drop() // or two states would wait for the room that the other one holds
	if s.careErr = r.hold(kept, valuesOf(kept.desired)); s.careErr != nil {
		return
	}
	turn, cancel := r.beginTurn(ctx, s)
	defer cancel()
	s.careErr = step.Run(turn, r.bind(delivery()), kept, r.Metrics.Observer(v1alpha1.BundleDeploymentKind, step.Caring))
	if s.careErr != nil && budget.Over(turn) {
		s.careErr = fmt.Errorf("its API server answers too slowly for a turn of %s", r.turnBudget())
	}
	s.stored = kept.stored
}

// applying tells that an apply was begun of which not everything is known to have been written: it was
// interrupted, or waits until an object is gone that is to be created again.
func (s *state) applying() bool {
	return slices.ContainsFunc(s.previous.Entries, func(e inventory.Entry) bool { return e.Begun || !e.Confirmed() })
}

// leaveOut notes objects that cannot be kept as they were applied, while all others are.
// What trusts certificates is left as it is together with the Secrets that hold them.
func (s *state) leaveOut(violations []plan.Violation) {
	if !s.keeping {
		return
	}
	secret := false
	for _, violation := range violations {
		s.leftOut = append(s.leftOut, violation.String())
		secret = secret || s.issued != nil && s.issued.secrets[violation.Object] != nil
	}
	if s.issued == nil || !secret && s.unseen() == nil {
		return
	}
	s.plan.LeaveOut(func(o plan.Object) bool { return s.issued.secrets[o.ID] != nil || s.trusts(o.Desired) })
}

// leaveOutFailed is leaveOut for objects that the API server refuses.
func (s *state) leaveOutFailed(failed []*apply.ObjectError) {
	out := map[inventory.ID]bool{}
	for _, f := range failed {
		s.leftOut = append(s.leftOut, f.Error())
		out[f.ID] = true
	}
	s.plan.LeaveOut(func(o plan.Object) bool { return out[o.ID] })
}

// careWords say how the last applied revision fares while a newer one fails with a message.
func (s *state) careWords(message string) string {
	kept := s.kept
	unsaid := slices.DeleteFunc(slices.Clone(kept.leftOut), func(line string) bool { return strings.Contains(message, line) })
	slices.Sort(unsaid)
	unhealthy := ""
	if kept.health != nil && !kept.health.Healthy() {
		unhealthy = ", and is not healthy: " + kept.health.Message()
	}
	switch {
	case len(kept.leftOut) == 0 && unhealthy != "":
		return unhealthy
	case len(kept.leftOut) == 0:
		return " and is kept from drifting"
	case len(unsaid) == 0:
		return fmt.Sprintf(" and is kept from drifting, but for %d of its objects", len(kept.leftOut)) + unhealthy
	}
	return fmt.Sprintf(" and is kept from drifting, but for %d of its objects%s\n%s", len(kept.leftOut), unhealthy, strings.Join(unsaid, "\n"))
}
