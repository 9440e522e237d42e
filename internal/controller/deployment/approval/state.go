// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/digest"
	"github.com/satchel-dev/satchel/internal/apply/plan/impact"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/keyring"
	"github.com/satchel-dev/satchel/internal/controller/nslabel"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/plural"
)

// Approvals decide whether plans may be executed.
type Approvals struct {
	// Client reads and marks BundleApprovals, from a cache.
	Client client.Client
	// Live reads namespaces.
	Live   client.Reader
	Labels *nslabel.Reader
	// Keys of the installation prove what was approved.
	Keys      keyring.Ring
	Snapshots *lastapplied.Snapshots
	// Manager is the field manager that marks approvals as consumed.
	Manager string
}

// Question is about one plan of a deployment.
type Question struct {
	Object      *v1alpha1.BundleDeployment
	PlanDigests PlanDigests // of the revision
	Listed      inventory.Inventory
	// Artifact is the digest of the archive that the plan was made from.
	Artifact string
	// Hooks of the revision, as they are converted.
	Hooks []plan.Hook
	// Grounds digests what the plan is made of; empty if unknown.
	Grounds func() string
	// Reach is where the kubeconfig leads, as of Reach; "" on this cluster.
	Reach string
	// Rejected: remediation goes back from the revision of the source.
	Rejected bool
	Now      time.Time
}

// State is what is known about the approval of a plan.
type State struct {
	PlanDigests

	// digest of the plan; base is the digest of the plan before it.
	Digest, base string
	// record is the plan that was executed last; nil when there is none that is proven.
	record *v1alpha1.ExecutedPlan
	// underWay: the plan is the recorded one, or the rest of it.
	underWay bool
	// returning: remediation rolls back to a revision that was approved and healthy.
	returning bool
	// destroys are the objects with deletions that are not approved yet.
	destroys []inventory.ID
	// approved allows the plan, and denied forbids it; nil without such a decision.
	approved, Denied *v1alpha1.BundleApproval
	// reach is where the kubeconfig leads. server is the approved plan to use another server than before; "" for none.
	reach, server string
	// demand is the approval that the spec and the namespace require.
	demand demand
	// Asks lists the reasons why the plan needs an approval; empty if it needs none.
	Asks []string
	// head says where the plan goes, with spec.catalog.
	head string
	// Begun: this reconcile recorded that the plan is executed.
	Begun bool
}

// Consider computes the digest of a plan and looks up the decisions about it.
func (a Approvals) Consider(ctx context.Context, q Question, made *plan.Plan) (*State, error) {
	c := &State{PlanDigests: q.PlanDigests, reach: q.Reach, destroys: made.Destroys(q.Listed)}
	var err error
	if c.terms, err = termsOf(q.Object, q.Listed.Target, q.Reach).Digest(); err != nil {
		return nil, err
	}
	c.key = digest.Key(c.Material, c.terms)
	c.record = a.Proven(q.Object)
	a.carry(q, c, made)
	c.follow()
	c.Digest = digest.Plan(string(q.Object.UID), c.key, c.base, made.Pruned())
	if c.settled() {
		c.Digest = c.record.Plan
	}
	c.returning = q.Rejected && a.returns(q.Object, c)
	if c.settled() {
		return c, nil
	}
	if c.demand, err = a.demandOn(ctx, q.Object, q.Grounds, c.record); err != nil || c.demand.mode == v1alpha1.ApprovalAutomatic && made.Held == nil {
		return c, err
	}
	if err := a.decisions(ctx, q.Object, q.Now, c); err != nil {
		return c, err
	}
	c.server, err = a.approvedServer(ctx, q)
	return c, err
}

// Lifts tells whether the deletions that a plan holds are approved.
func (c *State) Lifts(made *plan.Plan) bool {
	return made.Held != nil && c.approved != nil && c.Denied == nil
}

// follow sets the base of the plan from the record of the last plan that was begun.
func (c *State) follow() {
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
func (c *State) settled() bool { return c.underWay && len(c.destroys) == 0 }

// Proposal is a plan for which an approval may be necessary.
type Proposal struct {
	Object *v1alpha1.BundleDeployment
	Plan   *plan.Plan
	Hooks  []plan.Hook
	Listed inventory.Inventory
	// Head says where the plan goes, and Further are escalations beside those of its objects; "" and nil without spec.catalog.
	Head    string
	Further []string
	// bare returns objects of the plan as the bundle has them.
	Bare func([]plan.Object) ([]*unstructured.Unstructured, error)
}

// Waits tells whether a plan has to wait for an approval, and records why. The first line that
// holds decides.
//
//	it is what was begun before           goes on
//	remediation goes back                 goes on
//	the mode is Automatic, and holds      goes on
//	it is approved, and not denied        goes on
//	it is denied                          waits
//	the mode asks for nothing             goes on
//	else                                  waits
func (a Approvals) Waits(c *State, p Proposal) (bool, error) {
	if c == nil || c.settled() || c.returning {
		return false, nil
	}
	if c.approved != nil && c.Denied == nil || c.demand.mode == v1alpha1.ApprovalAutomatic {
		return false, nil
	}
	var err error
	c.head = p.Head
	c.Asks, err = a.asks(c, p)
	return err == nil && (len(c.Asks) > 0 || c.Denied != nil), err
}

// asks lists what in the plan needs an approval in the current mode.
func (a Approvals) asks(c *State, p Proposal) ([]string, error) {
	deletions := destroysText("deleted", c.destroys)
	switch {
	case c.underWay:
		return deletions, nil
	case c.demand.mode == v1alpha1.ApprovalManual:
		return append([]string{p.Plan.Summary()}, deletions...), nil
	}
	var present []inventory.ID
	for action := range p.Plan.Actions() {
		present = append(present, action.ID)
	}
	deletions = destroysText("deleted", impact.WithoutRenamed(c.destroys, present))
	more, err := a.escalations(c, p)
	return slices.Concat(c.demand.because, more, deletions), err
}

// Pending is the failure of a plan that waits for an approval.
func (c *State) Pending(d *v1alpha1.BundleDeployment, revision string) error {
	if c.Denied != nil {
		return failure.Error{Reason: v1alpha1.ReasonApprovalDenied, Waiting: true, Woken: true, Err: errors.New(c.DeniedText(revision))}
	}
	return failure.Error{Reason: v1alpha1.ReasonApprovalRequired, Waiting: true, Woken: true, Err: errors.New(c.requiredText(d, revision))}
}

// AwaitsApproval tells whether a step failed because the plan is not approved.
func AwaitsApproval(err error) bool {
	reason := failure.Of(err).Reason
	return err != nil && (reason == v1alpha1.ReasonApprovalRequired || reason == v1alpha1.ReasonApprovalDenied)
}

// requiredText says what needs an approval, and how to approve it.
func (c *State) requiredText(d *v1alpha1.BundleDeployment, revision string) string {
	to := "revision " + revision
	if c.head != "" {
		to = c.head + ", " + to
	}
	return fmt.Sprintf("the plan %s for %s waits for an approval: %s.\nSee it with satchel plan %s -n %s; approve it with satchel approve %s -n %s --plan %s, or deny it with the same command and --deny",
		c.Digest, to, strings.Join(c.Asks, "; "), d.Name, d.Namespace, d.Name, d.Namespace, c.Digest)
}

// DeniedText says who denied the plan, and what to do.
func (c *State) DeniedText(revision string) string {
	why := "no reason is given"
	if reason := strings.TrimSpace(c.Denied.Spec.Reason); reason != "" {
		why = reason
	}
	return fmt.Sprintf("the plan %s for revision %s is denied by bundleapproval %s: %s.\nPropose another plan, by another revision or spec; or delete that bundleapproval to decide again",
		c.Digest, revision, c.Denied.Name, why)
}

// mostAsked bounds how many objects of each kind of reason are named.
const mostAsked = 10

// destroysText names what would be deleted, or recreated.
func destroysText(what string, ids []inventory.ID) []string {
	if len(ids) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s would be %s: %s", plural.Of(len(ids), "object"), what, pipeline.JoinNames(ids[:min(len(ids), mostAsked)]))
	if len(ids) > mostAsked {
		text += fmt.Sprintf(", and %d more", len(ids)-mostAsked)
	}
	return []string{text}
}
