// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Writer applies objects as one field manager, for real or as a dry run.
type Writer struct {
	Client     *tenant.Client
	Owner      inventory.Owner
	Protection ownership.Protection
	Earlier    func(inventory.Entry) []*unstructured.Unstructured
	DryRun     bool
	Whole      bool // answers are wanted with the object
	// GaveWay is told which fields were removed because they exclude what the bundle sets; may be nil.
	GaveWay func(inventory.ID, []fieldmanager.Field)
	// Served is how long a custom resource waits for its kind to be served.
	Served time.Duration
}

const (
	// Attempts is how often a write or a deletion follows an object that keeps changing.
	Attempts = 3
	// WasChanging says that an object changed while it was written: try again.
	WasChanging = "was changing"
)

// RefusalError is an apply that was not forced because of other managers, which it names.
type RefusalError struct{ Why string }

// Error implements error.
func (r *RefusalError) Error() string { return r.Why }

// Write applies one object: first without force, so that the API server itself
// reports the conflicting managers.
func (w Writer) Write(ctx context.Context, action plan.Action) (*tenant.Answer, error) {
	if action.Verb == plan.Adopt && !w.DryRun {
		if err := w.adopt(ctx, action); err != nil {
			return nil, err
		}
	}
	if len(action.Given)+len(action.Handover.Kept)+len(action.Handover.Regained) > 0 && !w.DryRun {
		return w.applyGiving(ctx, action)
	}
	return w.claim(ctx, action)
}

// claim applies the desired fields of an object.
func (w Writer) claim(ctx context.Context, action plan.Action) (*tenant.Answer, error) {
	if action.OnlyCreate && !w.DryRun {
		if answer, decided, err := w.create(ctx, action); decided {
			return answer, err
		}
	}
	if action.At != "" && !w.DryRun {
		answer, err := w.takeBack(ctx, action)
		if !apierrors.IsConflict(err) {
			return answer, err
		}
	}
	answer, err := w.Send(ctx, action, action.Desired, false)
	conflicts := fieldmanager.ConflictsOf(err)
	if len(conflicts) == 0 {
		return answer, err
	}
	return w.SendAgain(ctx, action, action.Desired, conflicts, w.Earlier(action.Previous))
}

// SendAgain decides about the conflicts with other field managers: it returns a *RefusalError, or sends the apply by force or
// without the fields that others keep. earlier are the contents that were applied before.
func (w Writer) SendAgain(
	ctx context.Context, action plan.Action, desired *unstructured.Unstructured, conflicts []fieldmanager.Conflict, earlier []*unstructured.Unstructured,
) (*tenant.Answer, error) {
	verdict := fieldmanager.Decide(conflicts, action, earlier)
	if len(verdict.Refused) > 0 {
		return nil, &RefusalError{Why: fieldmanager.Describe(verdict.Refused)}
	}
	if len(verdict.Excluded) > 0 {
		desired = fieldmanager.WithoutPaths(desired, verdict.Excluded)
	}
	return w.Send(ctx, action, desired, verdict.Force)
}

// takeBack applies an object by force, on condition that it did not change since the decision.
func (w Writer) takeBack(ctx context.Context, action plan.Action) (*tenant.Answer, error) {
	desired := action.Desired.DeepCopy()
	desired.SetResourceVersion(action.At)
	return w.Send(ctx, action, desired, true)
}

// servedPoll is how often a custom resource is tried while its kind is not served, which is
// a moment after its CRD says so.
const servedPoll = 100 * time.Millisecond

// Send sends one apply of the desired object. Where that is refused as invalid, fields that exclude what it sets give way.
func (w Writer) Send(ctx context.Context, action plan.Action, desired *unstructured.Unstructured, force bool) (*tenant.Answer, error) {
	desired = fieldmanager.WithoutNulls(desired)
	sent, err := w.together(ctx, action, desired)
	if err != nil {
		return nil, err
	}
	answer, err := w.send(ctx, action, sent, force)
	if !apierrors.IsInvalid(err) || !action.Exists() {
		return answer, err
	}
	return w.giveWay(ctx, action, desired, force, err)
}

// together is what is sent in place of the desired object: in a dry run, it has the fields that an autoscaler keeps, which a dry run
// cannot release.
func (w Writer) together(ctx context.Context, action plan.Action, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !w.DryRun || len(action.Handover.Kept) == 0 {
		return desired, nil
	}
	live, err := w.Client.Get(ctx, tenant.RefTo(action.ID, action.Resource))
	if apierrors.IsNotFound(err) {
		return desired, nil
	}
	if err != nil {
		return nil, err
	}
	return fieldmanager.Together(desired, live, action.Handover.Paths())
}

// send sends one apply, and waits a moment where the kind is not served yet.
func (w Writer) send(ctx context.Context, action plan.Action, desired *unstructured.Unstructured, force bool) (*tenant.Answer, error) {
	ref := tenant.RefTo(action.ID, action.Resource)
	options := w.options(action)
	options.Force = force
	answer, err := w.Client.Apply(ctx, ref, desired, options)
	if action.Definition == "" && objecterror.NotServed(err) {
		w.Client.Kinds().Forget() // the discovery is out of date
	}
	if action.Definition == "" || w.Served <= 0 || !objecterror.NotServed(err) {
		return answer, err
	}
	_ = wait.PollUntilContextTimeout(ctx, servedPoll, w.Served, false, func(ctx context.Context) (bool, error) {
		answer, err = w.Client.Apply(ctx, ref, desired, options)
		return !objecterror.NotServed(err), nil
	}) // a time-out leaves the last answer, which says more
	return answer, err
}

func (w Writer) options(action plan.Action) tenant.ApplyOptions {
	return tenant.ApplyOptions{
		Manager: w.Owner.Manager(), DryRun: w.DryRun,
		Whole: w.Whole || !w.DryRun && !health.AlwaysCurrent(action.GroupKind()),
	}
}

// Recreatable tells whether an action may be executed by deleting and recreating the
// object: its content changed, so that it happens once, and no other object and no
// user data depends on it.
func Recreatable(action plan.Action) bool {
	return action.Alters() && objecterror.Precious[action.GroupKind().String()] == ""
}
