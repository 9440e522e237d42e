// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// writer applies objects as one field manager, for real or as a dry run.
type writer struct {
	client     *tenant.Client
	owner      Owner
	protection plan.Protection
	earlier    func(inventory.Entry) []*unstructured.Unstructured
	dryRun     bool
	whole      bool // answers are wanted with the object
	// served is how long a custom resource waits for its kind to be served.
	served time.Duration
}

// refusal is an apply that was not forced because of other managers, which it names.
type refusal struct{ why string }

// Error implements error.
func (r *refusal) Error() string { return r.why }

// write applies one object: first without force, so that the API server itself
// reports the conflicting managers.
func (w writer) write(ctx context.Context, action plan.Action) (*tenant.Answer, error) {
	if action.Verb == plan.Adopt && !w.dryRun {
		if err := w.adopt(ctx, action); err != nil {
			return nil, err
		}
	}
	if len(action.Given) > 0 && !w.dryRun {
		return w.give(ctx, action)
	}
	return w.claim(ctx, action)
}

// claim applies the desired fields of an object.
func (w writer) claim(ctx context.Context, action plan.Action) (*tenant.Answer, error) {
	if action.At != "" && !w.dryRun {
		answer, err := w.takeBack(ctx, action)
		if !apierrors.IsConflict(err) {
			return answer, err
		}
	}
	answer, err := w.send(ctx, action, action.Desired, false)
	conflicts := conflictsOf(err)
	if len(conflicts) == 0 {
		return answer, err
	}
	verdict := judge(conflicts, action, w.earlier(action.Previous))
	if len(verdict.refused) > 0 {
		return nil, &refusal{why: describe(verdict.refused)}
	}
	desired := action.Desired
	if len(verdict.excluded) > 0 {
		desired = without(desired, verdict.excluded)
	}
	return w.send(ctx, action, desired, verdict.force)
}

// takeBack applies an object by force, on condition that it did not change since the decision.
func (w writer) takeBack(ctx context.Context, action plan.Action) (*tenant.Answer, error) {
	desired := action.Desired.DeepCopy()
	desired.SetResourceVersion(action.At)
	return w.send(ctx, action, desired, true)
}

// servedPoll is how often a custom resource is tried while its kind is not served, which is
// a moment after its CRD says so.
const servedPoll = 100 * time.Millisecond

func (w writer) send(ctx context.Context, action plan.Action, desired *unstructured.Unstructured, force bool) (*tenant.Answer, error) {
	ref := refOf(action.ID, action.Resource)
	options := tenant.ApplyOptions{
		Manager: w.owner.Manager(), Force: force, DryRun: w.dryRun,
		Whole: w.whole || !w.dryRun && !health.AlwaysCurrent(action.GroupKind()),
	}
	answer, err := w.client.Apply(ctx, ref, desired, options)
	if action.Definition == "" && notServed(err) {
		w.client.Kinds().Forget() // the discovery is out of date
	}
	if action.Definition == "" || w.served <= 0 || !notServed(err) {
		return answer, err
	}
	_ = wait.PollUntilContextTimeout(ctx, servedPoll, w.served, false, func(ctx context.Context) (bool, error) {
		answer, err = w.client.Apply(ctx, ref, desired, options)
		return !notServed(err), nil
	}) // a time-out leaves the last answer, which says more
	return answer, err
}

// notServed tells whether the API server has no such resource, as opposed to no
// such object or namespace.
func notServed(err error) bool {
	return apierrors.IsNotFound(err) && !missingNamespace(err)
}
