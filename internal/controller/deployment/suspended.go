// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"encoding/base64"
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
	"github.com/satchel-dev/satchel/internal/controller/retry"
	"github.com/satchel-dev/satchel/internal/controller/step"
)

// suspended leaves everything as it is, but for certificates that would end: they
// are renewed, and nothing else is.
func (r *Reconciler) suspended(ctx context.Context, s *state) (ctrl.Result, error) {
	markSuspended(s.object)
	key := client.ObjectKeyFromObject(s.object)
	r.memory.forget(key)
	err := step.Run(ctx, r.renewing(), s, r.Metrics.Observer(v1alpha1.BundleDeploymentKind, step.Renewing))
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctrl.Result{}, nil // the process ends, or leads no longer
	}
	if report.IsStale(err) {
		return ctrl.Result{RequeueAfter: retry.ConflictPause}, nil
	}
	if err != nil {
		s.notRenewed = append(s.notRenewed, "not renewed while suspended: "+judge(err).Error())
	}
	setCertificates(s)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if failed := r.write(ctx, s); failed != nil {
		return retry.Conflict(failed)
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
	return s.untilRenewal(math.MaxInt64)
}

// renewing are the steps of a suspended deployment.
func (r *Reconciler) renewing() []step.Step[*state] {
	return []step.Step[*state]{
		{Name: "recall", Run: r.recall},
		{Name: "account", Run: r.account},
		{Name: "target", Run: r.target},
		{Name: "certify", Run: r.certify},
		{Name: "plan", Run: r.planRenewal},
		{Name: "preflight", Run: r.preflight},
		{Name: "apply", Run: r.applyRenewal},
	}
}

// recall takes from what was applied last what has to do with certificates. Where
// the status knows of none, there are none, unless it was lost.
func (r *Reconciler) recall(ctx context.Context, s *state) (step.Outcome, error) {
	if s.object.Status.CertificatesExpire == nil && s.object.Status.Inventory != nil {
		return step.Stop, nil
	}
	last, found, err := readSnapshot(r.Snapshots, string(s.object.UID))
	switch {
	case err != nil:
		return step.Stop, err
	case !found && s.object.Status.CertificatesExpire != nil:
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
	return step.Continue, s.hold(ctx, r.rendering, s.desired)
}

// planRenewal plans the Secrets that are due and, where the authority has a
// successor, that it is trusted. What somebody changed or deleted meanwhile is left
// alone.
func (r *Reconciler) planRenewal(ctx context.Context, s *state) (step.Outcome, error) {
	if len(s.issued.set.Stale) == 0 && !s.issued.set.Waiting {
		return step.Stop, nil
	}
	objects := s.planned()
	observed, err := apply.Observe(ctx, s.client, apply.Observing{
		Owner: s.owner, Desired: objects, Previous: s.about(objects), HashKey: r.HashKey,
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
			same, err := r.asApplied(ctx, s, action, observed)
			if err != nil {
				return err
			}
			if same {
				kept = append(kept, action)
			} else {
				left = append(left, action.ID)
			}
		}
		s.plan.Stages[i].Actions = kept
	}
	if slices.Contains(left, certificate.AuthorityID(s.owner)) {
		s.plan.Stages = nil
	}
	for _, id := range left {
		s.notRenewed = append(s.notRenewed, fmt.Sprintf("%s was changed while suspended and is left alone: resume the deployment to renew it", id))
	}
	return nil
}

// asApplied tells whether an object is on the cluster as this deployment applied it
// last, so that applying it again reverts nothing.
func (r *Reconciler) asApplied(ctx context.Context, s *state, action plan.Action, observed plan.Input) (bool, error) {
	live, exists := observed.Live[action.ID]
	entry := action.Previous
	if !exists || live.Deleting || !entry.Confirmed() || live.Fields != entry.Fields {
		return false, nil
	}
	if s.issued.secrets[action.ID] != nil {
		return true, nil
	}
	object, err := s.client.Get(ctx, tenant.Ref{Resource: action.Resource, Namespace: action.Namespace, Name: action.Name})
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", action.ID, err)
	}
	before := certificate.Inject(action.Desired, bundleOf(object))
	hash, err := inventory.HashRendered(before, r.HashKey)
	return hash == entry.Rendered, err
}

// bundleOf is what the webhook clients of an object trust, or the first of them
// where they differ.
func bundleOf(live *unstructured.Unstructured) []byte {
	client, _, _ := unstructured.NestedMap(live.Object, "spec", "conversion", "webhook", "clientConfig")
	if hooks, _, _ := unstructured.NestedSlice(live.Object, "webhooks"); len(hooks) > 0 {
		hook, _ := hooks[0].(map[string]any)
		client, _ = hook["clientConfig"].(map[string]any)
	}
	encoded, _ := client["caBundle"].(string)
	bundle, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil // the API server encodes it
	}
	return bundle
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
