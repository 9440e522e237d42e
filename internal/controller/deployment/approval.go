// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// consent is what is known about the approval of a plan.
type consent struct {
	substance

	// digest of the plan; base is the digest of the plan before it.
	digest, base string
	// record is the plan that was executed last; nil when there is none that is proven.
	record *v1alpha1.ExecutedPlan
	// underWay: the plan is the recorded one, or the rest of it.
	underWay bool
	// returning: remediation rolls back to a revision that was approved and healthy.
	returning bool
	// destroys are the objects with deletions that are not approved yet.
	destroys []inventory.ID
	// approved allows the plan, and denied forbids it; nil without such a decision.
	approved, denied *v1alpha1.BundleApproval
	// demand is the approval that the spec and the namespace require.
	demand demand
	// asks lists the reasons why the plan needs an approval; empty if it needs none.
	asks []string
	// begun: this reconcile recorded that the plan is executed.
	begun bool
}

// consider computes the digest of a plan and looks up the decisions about it. Where a
// plan with a held prune is approved, the plan is made again without the limit.
func (r *Reconciler) consider(ctx context.Context, s *state, observed plan.Input, made *plan.Plan) error {
	if s.keeping {
		return nil
	}
	c := &consent{substance: s.rendered.substance, destroys: made.Destroys(s.listed.inventory)}
	var err error
	if c.terms, err = s.terms().Digest(); err != nil {
		return err
	}
	c.key = plan.Key(c.material, c.terms)
	c.record = r.proven(s.object)
	c.follow()
	c.digest = plan.Digest(string(s.object.UID), c.key, c.base, made.Pruned())
	if c.settled() {
		c.digest = c.record.Plan
	}
	c.returning = s.resolved.rejected != nil && r.returns(s, c)
	s.decided.consent = c
	if c.settled() {
		return nil
	}
	if c.demand, err = r.demandOn(ctx, s, c.record); err != nil || c.demand.mode == v1alpha1.ApprovalAutomatic && made.Held == nil {
		return err
	}
	if err := r.decisions(ctx, s, c); err != nil {
		return err
	}
	if c.approved != nil && c.denied == nil && made.Held != nil {
		observed.Pruning.Limit = nil
		*made = plan.Make(observed)
	}
	return nil
}

// follow sets the base of the plan from the record of the last plan that was begun.
func (c *consent) follow() {
	if c.record == nil {
		return
	}
	if c.underWay = c.record.Key == c.key; c.underWay {
		c.base = c.record.Base
		return
	}
	c.base = c.record.Plan
}

// settled tells that no decision is needed: the plan was begun before, and its
// deletions were approved then.
func (c *consent) settled() bool { return c.underWay && len(c.destroys) == 0 }

// approve stops a plan that waits for an approval. The first line that holds
// decides.
//
//	it is what was begun before           goes on
//	remediation goes back                 goes on
//	the mode is Automatic, and holds      goes on
//	it is approved, and not denied        goes on
//	it is denied                          ApprovalDenied
//	the mode asks for nothing             goes on
//	else                                  ApprovalRequired
func (r *Reconciler) approve(_ context.Context, s *state) (pipeline.Outcome, error) {
	c := s.decided.consent
	if !s.resolved.due || s.keeping || c == nil || c.settled() || c.returning {
		return pipeline.Continue, nil
	}
	if c.approved != nil && c.denied == nil || c.demand.mode == v1alpha1.ApprovalAutomatic {
		return pipeline.Continue, nil
	}
	var err error
	if c.asks, err = r.asks(s); err != nil || len(c.asks) == 0 && c.denied == nil {
		return pipeline.Continue, err
	}
	s.did(v1alpha1.PlannedCondition)
	return pipeline.Stop, s.pending()
}

// pending is the failure of a plan that waits for an approval.
func (s *state) pending() error {
	c := s.decided.consent
	if c.denied != nil {
		return failure.Error{Reason: v1alpha1.ReasonApprovalDenied, Waiting: true, Woken: true, Err: errors.New(s.deniedText())}
	}
	return failure.Error{Reason: v1alpha1.ReasonApprovalRequired, Waiting: true, Woken: true, Err: errors.New(s.requiredText())}
}

// awaitsApproval tells whether a step failed because the plan is not approved.
func awaitsApproval(err error) bool {
	reason := failure.Of(err).Reason
	return err != nil && (reason == v1alpha1.ReasonApprovalRequired || reason == v1alpha1.ReasonApprovalDenied)
}

// requiredText says what needs an approval, and how to approve it.
func (s *state) requiredText() string {
	c, d := s.decided.consent, s.object
	return fmt.Sprintf("the plan %s for revision %s waits for an approval: %s.\nSee it with satchel plan %s -n %s; approve it with satchel approve %s -n %s --plan %s, or refuse it with satchel deny",
		c.digest, s.revision(), strings.Join(c.asks, "; "), d.Name, d.Namespace, d.Name, d.Namespace, c.digest)
}

// deniedText says who denied the plan, and what to do.
func (s *state) deniedText() string {
	c := s.decided.consent
	why := "no reason is given"
	if reason := strings.TrimSpace(c.denied.Spec.Reason); reason != "" {
		why = reason
	}
	return fmt.Sprintf("the plan %s for revision %s is denied by bundleapproval %s: %s.\nPropose another plan, by another revision or spec; or delete that bundleapproval to decide again",
		c.digest, s.revision(), c.denied.Name, why)
}

// asks lists what in the plan needs an approval in the current mode.
func (r *Reconciler) asks(s *state) ([]string, error) {
	deletions := destroysText("deleted", s.decided.consent.destroys)
	switch {
	case s.decided.consent.underWay:
		return deletions, nil
	case s.decided.consent.demand.mode == v1alpha1.ApprovalManual:
		return append([]string{s.decided.plan.Summary()}, deletions...), nil
	}
	more, err := r.escalations(s)
	return slices.Concat(s.decided.consent.demand.because, more, deletions), err
}

// mostAsked bounds how many objects of each kind of reason are named.
const mostAsked = 10

// destroysText names what would be deleted, or recreated.
func destroysText(what string, ids []inventory.ID) []string {
	if len(ids) == 0 {
		return nil
	}
	text := fmt.Sprintf("%d objects would be %s: %s", len(ids), what, names(ids[:min(len(ids), mostAsked)]))
	if len(ids) > mostAsked {
		text += fmt.Sprintf(", and %d more", len(ids)-mostAsked)
	}
	return []string{text}
}
