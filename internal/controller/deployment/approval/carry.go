// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"bytes"
	"encoding/json"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/format"
)

// IsCurrent tells whether the digests that a proof is about were computed as this version computes them.
func IsCurrent(proof string) bool {
	_, err := format.Plan.CutText(proof)
	return err == nil
}

// carry brings the record of the executed plan to the digests of this version, where another one computed those in it. They do not
// tell whether the plan is the same, so this does: the spec is the one of that plan, it leads to the same cluster, every object keeps the
// content that the inventory records, without being adopted or recreated, none is removed, and the hooks are those that ran. What allowed the
// mode Automatic stays as recorded: it is judged when the content changes. Any other plan, and one of which this is not known, is judged as
// a new one. A record with digests of this version follows the spec as long as those are the same.
func (a Approvals) carry(q Question, c *State, made *plan.Plan) {
	if c.record == nil {
		return
	}
	record := c.record.DeepCopy()
	switch {
	case !IsCurrent(record.Proof):
		if made.Held != nil || len(made.Pruned()) > 0 || !LeavesContents(made, q.Listed) || replaces(made) || !sameSpec(q, record) || !a.sameHooks(q) {
			return
		}
		record.Key, record.Terms = c.key, c.terms
	case record.Key != c.key || record.Generation == q.Object.Generation:
		return
	}
	record.Generation = q.Object.Generation
	a.Prove(q.Object, record)
	q.Object.Status.Internal.Executed, c.record = record, record
}

// sameSpec tells whether the spec is the one that led to the executed plan, and its kubeconfig leads to the same server as the same user.
func sameSpec(q Question, record *v1alpha1.ExecutedPlan) bool {
	spec := &q.Object.Spec
	return record.Generation == q.Object.Generation && len(reaches(record, spec)) == 0 && len(LeadsElsewhere(record, spec, q.Reach)) == 0
}

// replaces tells whether a plan adopts or recreates an object.
func replaces(made *plan.Plan) bool {
	for action := range made.Actions() {
		if action.Verb == plan.Adopt || action.Verb == plan.Recreate {
			return true
		}
	}
	return false
}

// LeavesContents tells whether all objects of a plan have the content with which they were applied, by hashes with the key of the
// deployment. Drift does not count.
func LeavesContents(made *plan.Plan, listed inventory.Inventory) bool {
	for _, object := range made.Objects() {
		entry, found := listed.Get(object.ID)
		if !found || !entry.Confirmed() || entry.Begun || entry.Rendered.IsZero() || entry.Rendered != object.Rendered {
			return false
		}
	}
	return true
}

// sameHooks tells whether the hooks of the revision ran, of the same artifact and with the same spec, and are those that were stored when it
// was applied: values of ConfigMaps and Secrets change neither of the two. Where hooks ran before, it has to be known that there were none.
func (a Approvals) sameHooks(q Question) bool {
	ran := q.Object.Status.Hooks
	if len(q.Hooks) == 0 && ran == nil {
		return true
	}
	if len(q.Hooks) > 0 && (ran == nil || ran.Digest != q.Artifact || ran.Generation != q.Object.Generation) {
		return false
	}
	last, applied, err := snapshot.Read(a.Snapshots, string(q.Object.UID))
	if err != nil || !applied || len(last.Hooks) != len(q.Hooks) {
		return false
	}
	if len(q.Hooks) == 0 {
		return true
	}
	before, err := json.Marshal(last.Hooks)
	if err != nil {
		return false
	}
	now, err := json.Marshal(q.Hooks)
	return err == nil && bytes.Equal(before, now)
}
