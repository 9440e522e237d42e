// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/controller/report"
	"github.com/satchel-dev/satchel/internal/controller/step"
)

// suspended leaves everything as it is, but for certificates that would end: they
// are renewed, and nothing else is.
func (r *Reconciler) suspended(ctx context.Context, s *state) (ctrl.Result, error) {
	markSuspended(s.object)
	key := client.ObjectKeyFromObject(s.object)
	r.memory.forget(key)
	r.unwatch(key)
	turn, cancelTurn := r.beginTurn(ctx, s)
	defer cancelTurn()
	err := r.scrub(ctx, s, s.ofCluster(step.Run(turn, r.renewing(), s, r.Metrics.Observer(v1alpha1.BundleDeploymentKind, step.Renewing))))
	r.giveUpPlaces(s, err)
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctrl.Result{}, nil // the process ends, or leads no longer
	}
	if report.IsStale(err) {
		return ctrl.Result{RequeueAfter: r.backoff.Conflicted(key)}, nil // decided on a stale copy; no object was written
	}
	if err != nil {
		s.notRenewed = append(s.notRenewed, "not renewed while suspended: "+judge(err).Error())
	}
	setCertificates(s)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if failed := r.write(ctx, s); failed != nil {
		return r.backoff.Conflict(key, failed)
	}
	r.emitCertificates(s)
	r.showExpiry(s)
	return ctrl.Result{RequeueAfter: r.pauseSuspended(s, err)}, nil
}

// pauseSuspended is how long until the certificates have to be looked at; zero when
// there are none.
func (r *Reconciler) pauseSuspended(s *state, err error) time.Duration {
	key := client.ObjectKeyFromObject(s.object)
	if err != nil {
		return r.backoff.Failed(key, s.calmly())
	}
	r.backoff.Succeeded(key)
	if s.issued == nil {
		return 0
	}
	if len(s.notRenewed) > 0 {
		return s.untilRenewal(leftPause)
	}
	return s.untilRenewal(math.MaxInt64)
}

// leftPause is how soon it is looked again at what somebody keeps from being
// renewed, which becomes a warning in the end.
const leftPause = 24 * time.Hour

// renewing are the steps of a suspended deployment.
func (r *Reconciler) renewing() []step.Step[*state] {
	return []step.Step[*state]{
		{Name: "recall", Run: r.recall},
		{Name: "account", Run: r.account},
		{Name: "target", Run: r.target},
		{Name: "certify", Run: r.certify},
		{Name: "plan", Run: r.planRenewal},
		{Name: "preflight", Run: r.preflight},
		{Name: "remember", Run: r.rememberRenewal},
		{Name: "apply", Run: r.applyRenewal},
	}
}

// recall takes from what was applied last what has to do with certificates. Where
// the status knows of none, there are none, unless it was lost.
func (r *Reconciler) recall(_ context.Context, s *state) (step.Outcome, error) {
	if s.object.Status.CertificateExpirationTime == nil && s.object.Status.Inventory != nil {
		return step.Stop, nil
	}
	last, found, err := readSnapshot(r.Snapshots, string(s.object.UID))
	switch {
	case err != nil:
		return step.Stop, err
	case !found && s.object.Status.CertificateExpirationTime != nil:
		return step.Stop, errors.New("what was applied last is not in the cache any more: resume the deployment to have it loaded")
	case len(last.Certificates) == 0:
		return step.Stop, nil
	}
	s.due, s.wanted = true, last.Certificates
	for _, object := range last.Objects {
		if s.trusts(object) {
			s.desired = append(s.desired, object)
		}
	}
	return step.Continue, r.hold(s, valuesOf(s.desired))
}

// planRenewal plans the Secrets that are due and, where the authority has a
// successor, that it is trusted, and goes on with what was interrupted. What somebody
// changed or deleted meanwhile is left alone.
func (r *Reconciler) planRenewal(ctx context.Context, s *state) (step.Outcome, error) {
	objects := s.planned()
	if len(s.issued.set.Stale) == 0 && !s.issued.set.Waiting && !s.interrupted(objects) {
		return step.Stop, nil
	}
	observed, err := apply.Observe(ctx, s.client, apply.Observing{
		Owner: s.owner, Desired: objects, Previous: s.about(objects), HashKey: s.hashKey,
		InstallNamespace: s.object.InstallNamespaceOrDefault(),
	})
	if err != nil {
		return step.Stop, err
	}
	made := plan.Make(observed)
	if err := refused(made.Violations); err != nil {
		return step.Stop, err
	}
	made.Prune = nil
	s.plan = &made
	return step.Continue, r.leaveChanged(ctx, s, observed)
}

// about is the part of the inventory that lists the objects.
func (s *state) about(objects []*unstructured.Unstructured) inventory.Inventory {
	some := inventory.Inventory{Target: s.previous.Target}
	for _, object := range objects {
		if entry, listed := s.previous.Get(inventory.IDOf(object)); listed {
			some = some.With(entry)
		}
	}
	return some
}

// interrupted tells that a renewal of the objects was begun and is not known to have ended.
func (s *state) interrupted(objects []*unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool {
		entry, _ := s.previous.Get(inventory.IDOf(object))
		return begun(entry)
	})
}

// begun tells that an object was as applied last when its renewal was begun. How
// that ended is not known: the inventory says so by not knowing what was rendered.
func begun(entry inventory.Entry) bool { return entry.Confirmed() && entry.Rendered.IsZero() }

// verdict on an object whose certificate or bundle is another one than was applied last.
type verdict int

const (
	changed verdict = iota // by somebody: it is left alone, and that is said
	done                   // it holds what it should already
	renew
)

// leaveChanged takes out of the plan what somebody changed, and says so. Nothing is
// signed by an authority that is left out itself.
func (r *Reconciler) leaveChanged(ctx context.Context, s *state, observed plan.Input) error {
	var left []inventory.ID
	for i, stage := range s.plan.Stages {
		var kept []plan.Action
		for _, action := range stage.Actions {
			if action.Rendered == action.Previous.Rendered {
				continue // whatever became of it, it is not due
			}
			judged, err := r.judgeRenewal(ctx, s, action, observed)
			switch {
			case err != nil:
				return err
			case judged == renew:
				kept = append(kept, action)
			case judged == changed:
				left = append(left, action.ID)
			}
		}
		s.plan.Stages[i].Actions = kept
	}
	if slices.Contains(left, s.authorityID()) {
		s.plan.Stages = nil
	}
	for _, id := range left {
		s.notRenewed = append(s.notRenewed, fmt.Sprintf("%s was changed while suspended and is left alone: resume the deployment to renew it", id))
	}
	return nil
}

// judgeRenewal tells whether applying an object again reverts nothing. The first
// line that holds decides.
//
//	it does not exist, or is going      changed
//	a Secret as it was applied last     renew
//	the authority, and who signs stays  renew    its other values come and go
//	a Secret that holds what it should  done
//	it trusts something, and is as it   renew    but for the bundle, where its renewal
//	was applied last                             was begun earlier
//	it trusts whom it should            done
//	else                                changed
func (r *Reconciler) judgeRenewal(ctx context.Context, s *state, action plan.Action, observed plan.Input) (verdict, error) {
	live, exists := observed.Live[action.ID]
	if !exists || live.Deleting {
		return changed, nil
	}
	same := action.Previous.Confirmed() && live.Fields == action.Previous.Fields
	if secret := s.issued.secrets[action.ID]; secret != nil {
		return s.judgeSecret(action.ID, same), nil
	}
	object, err := s.client.Get(ctx, tenant.Ref{Resource: action.Resource, Namespace: action.Namespace, Name: action.Name})
	if err != nil {
		return changed, fmt.Errorf("reading %s: %w", action.ID, err)
	}
	return s.judgeTrusting(action, object, same)
}

// judgeTrusting is the part of judgeRenewal about what trusts certificates.
func (s *state) judgeTrusting(action plan.Action, live *unstructured.Unstructured, same bool) (verdict, error) {
	hash, err := inventory.HashRendered(certificate.Inject(action.Desired, certificate.Bundle(live)), s.hashKey)
	switch {
	case err != nil:
		return changed, fmt.Errorf("comparing %s: %w", action.ID, err)
	case same && (begun(action.Previous) || hash == action.Previous.Rendered):
		return renew, nil
	case certificate.Carries(live, s.issued.set.Bundle):
		return done, nil
	}
	return changed, nil
}

// judgeSecret is the part of judgeRenewal about Secrets.
func (s *state) judgeSecret(id inventory.ID, same bool) verdict {
	authority := id == s.authorityID()
	switch {
	case same, authority && certificate.SameSigner(s.issued.found[id], s.issued.secrets[id]):
		return renew
	case !slices.Contains(s.issued.set.Stale, id):
		return done
	}
	return changed
}

// rememberRenewal stores, before the first write, which objects are written: they
// were as applied last, and whatever dies or fails after this, they are not taken for
// changed by somebody.
func (r *Reconciler) rememberRenewal(ctx context.Context, s *state) (step.Outcome, error) {
	var written []inventory.Entry
	for _, action := range s.plan.Actions() {
		if action.Writes() {
			entry := action.Previous
			entry.ID, entry.Version, entry.Rendered = action.ID, action.Resource.Version, inventory.Hash{}
			written = append(written, entry)
		}
	}
	if len(written) == 0 {
		return step.Stop, nil
	}
	s.plan.Inventory = s.plan.Inventory.With(written...)
	if err := s.record(s.previous.With(s.plan.Inventory.Entries...)); err != nil {
		return step.Stop, err
	}
	err := r.write(ctx, s)
	if err != nil { // what could not be stored is not to be tried again with the failure
		s.object.Status.Inventory = s.stored.Status.Inventory
	}
	return step.Continue, err
}

// applyRenewal writes what is left of the plan.
func (r *Reconciler) applyRenewal(ctx context.Context, s *state) (step.Outcome, error) {
	result, err := apply.Apply(ctx, s.client, *s.plan, r.options(s))
	s.applied = &result
	if recorded := s.record(s.previous.With(result.Inventory.Entries...)); recorded != nil {
		return step.Stop, recorded
	}
	if err != nil {
		return step.Stop, err
	}
	if failed := result.Errors(); len(failed) > 0 {
		return step.Stop, failure{reason: v1alpha1.ReasonApplyFailed, err: objectErrors(failed)}
	}
	return step.Continue, nil
}
