// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"slices"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/report"
	"github.com/satchel-dev/satchel/internal/controller/step"
)

// beforeWriting are the steps after whose failure nothing of the new revision
// has been touched.
var beforeWriting = []string{"accept", "source", "inputs", "depend", "load", "convert", "certify", "plan", "preflight", "dry-run", "approve", "hooks", "remember", "consume"}

// care keeps the last applied revision from drifting, and its health known,
// while a newer one cannot be brought to the cluster.
func (r *Reconciler) care(ctx context.Context, s *state, err error) {
	if report.IsStale(err) || !slices.Contains(beforeWriting, step.Failed(err)) {
		return // decided on a stale copy, or failed where the last revision is touched already
	}
	if s.object.Status.LastAppliedRevision == "" || s.client == nil {
		return
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
		rules: s.rules,
		due:   true, keeping: true, desired: last.Objects, wanted: last.Certificates,
	}
	s.kept = kept
	if kept.unapproved = awaitsApproval(err); kept.unapproved {
		if kept.client, s.careErr = r.approvedClient(ctx, s); s.careErr != nil {
			return
		}
	}
	s.drop() // or two states would wait for the room that the other one holds
	if s.careErr = kept.hold(ctx, r.rendering, kept.desired); s.careErr != nil {
		return
	}
	s.careErr = step.Run(ctx, r.delivery(), kept, r.Metrics.Observer(v1alpha1.BundleDeploymentKind, step.Caring))
	s.stored = kept.stored
}
