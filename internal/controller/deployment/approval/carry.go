// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/format"
)

// IsCurrent tells whether the digests that a proof is about were computed as this version computes them.
func IsCurrent(proof string) bool {
	_, err := format.Plan.CutText(proof)
	return err == nil
}

// carry brings the record of the executed plan to the digests of this version, where another one computed those in it. They do not
// tell whether the plan is the same, so this does: it leaves every object with the content that the inventory records and removes none, its
// hooks are those that ran, and the spec leads to the same ServiceAccount and cluster, and to the same end. What allowed the mode Automatic,
// and where a kubeconfig led, stays as recorded: it is judged when the content changes. Any other plan is judged as a new one.
func (a Approvals) carry(q Question, c *Consent, made *plan.Plan) {
	if c.record == nil || IsCurrent(c.record.Proof) || made.Held != nil || len(made.Pruned()) > 0 ||
		!LeavesContents(made, q.Listed) || !ranHooks(q, made) || len(reaches(c.record, &q.Object.Spec)) > 0 {
		return
	}
	record := c.record.DeepCopy()
	record.Key, record.Terms = c.key, c.terms
	a.Prove(q.Object, record)
	q.Object.Status.Executed, c.record = record, record
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

// ranHooks tells whether the hooks of a plan are those that ran: of the same artifact, with the same spec.
func ranHooks(q Question, made *plan.Plan) bool {
	ran := q.Object.Status.Hooks
	return len(made.Hooks) == 0 || ran != nil && ran.Digest == q.Artifact && ran.Generation == q.Object.Generation
}
