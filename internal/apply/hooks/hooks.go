// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/completion"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
)

// Runner runs hooks as the tenant, one step of one hook at each call. No call waits.
type Runner struct {
	Client     *tenant.Client
	Owner      inventory.Owner
	Protection ownership.Protection // of existing objects of others; empty is Prevent
	Rules      health.Rules
}

// Started is how far the start of a hook has come; when all fields are empty the context
// ended before it began.
type Started struct {
	UID     types.UID          // of the object that runs
	Waiting string             // what is left of an earlier run goes first
	Refused *objecterror.Error // it cannot be created
}

// Complete completes hooks as Observe does, for hooks that run without a plan. An
// error names the hook: its kind is not served, or its object cannot be completed.
func Complete(ctx context.Context, client *tenant.Client, owner inventory.Owner, installNamespace string, hooks []plan.Hook) ([]plan.HookObject, error) {
	completing := completion.Settings{Owner: owner, InstallNamespace: installNamespace}
	completed := make([]plan.HookObject, 0, len(hooks))
	for _, hook := range hooks {
		kind, err := client.Kinds().Find(ctx, hook.Object.GroupVersionKind())
		if err != nil {
			return nil, fmt.Errorf("looking for the kind of the hook %s: %w", inventory.IDOf(hook.Object), err)
		}
		object, err := completing.Complete(hook.Object, plan.Kind{Resource: kind.Resource, Namespaced: kind.Namespaced})
		if err != nil {
			return nil, err
		}
		completed = append(completed, plan.HookObject{HookTerms: hook.HookTerms, Object: object})
	}
	return completed, nil
}

// Start creates the object of a hook for a run, unless this run did that before. It first
// deletes the object of an earlier run, with its Pods, and waits for that. An error means
// that a retry may help.
func (h Runner) Start(ctx context.Context, hook plan.HookObject, run string) (Started, error) {
	ref := tenant.RefTo(hook.ID, hook.Resource)
	live, err := h.Client.Metadata(ctx, ref)
	switch {
	case apierrors.IsNotFound(err):
		return h.create(ctx, hook, run)
	case err != nil:
		return h.refused(ctx, hook, err)
	case live.Annotations[v1alpha1.HookRunAnnotation] == run && live.DeletionTimestamp == nil:
		return Started{UID: live.UID}, nil
	}
	seen := ownership.LiveOf(live, h.Owner)
	if seen.ClaimOf(h.Owner, h.Protection) == ownership.Foreign {
		return Started{Refused: &objecterror.Error{ID: hook.ID, Reason: "Conflict", Message: objecterror.OneLine(violation.Collides(seen, hook.ID, h.Owner).String())}}, nil
	}
	if guard := seen.GuardedNamespace(hook.ID); guard != "" {
		return Started{Refused: &objecterror.Error{ID: hook.ID, Reason: "Forbidden", Message: "has the label " + guard + ", so that no hook deletes it"}}, nil
	}
	gone, err := h.delete(ctx, ref, live)
	switch {
	case err != nil:
		return h.refused(ctx, hook, err)
	case gone:
		return h.create(ctx, hook, run)
	}
	return Started{Waiting: fmt.Sprintf("%s is left from an earlier run and %s", hook.ID, ownership.BeingDeleted(seen))}, nil
}

func (h Runner) create(ctx context.Context, hook plan.HookObject, run string) (Started, error) {
	desired := hook.Desired.DeepCopy()
	annotations := desired.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.HookRunAnnotation] = run
	desired.SetAnnotations(annotations)
	answer, err := h.Client.Apply(ctx, tenant.RefTo(hook.ID, hook.Resource), desired, tenant.ApplyOptions{Manager: h.Owner.Manager()})
	switch {
	case err != nil && hook.Definition != "" && objecterror.NotServed(err):
		return Started{Waiting: fmt.Sprintf("%s waits until its kind is served", hook.ID)}, nil
	case err != nil:
		return h.refused(ctx, hook, err)
	}
	return Started{UID: answer.Meta.UID}, nil
}

// refused tells a refusal from a failure to answer.
func (h Runner) refused(ctx context.Context, hook plan.HookObject, err error) (Started, error) {
	refused := objecterror.Of(hook.ID, err)
	if ctx.Err() != nil || refused.Transient() {
		return Started{}, fmt.Errorf("starting a hook: %w", refused)
	}
	return Started{Refused: refused}, nil
}

// delete deletes an object, its Pods first; gone tells that it is not there any more.
func (h Runner) delete(ctx context.Context, ref tenant.Ref, live *metav1.PartialObjectMetadata) (gone bool, err error) {
	if live.DeletionTimestamp != nil {
		return false, nil
	}
	gone, err = h.Client.DeleteFor(ctx, ref, live.UID, "", true)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // replaced meanwhile: the next call reads it
		return false, nil
	}
	return gone, err
}

// Look returns the progress of the hook with the UID: whether it completed, or why not.
func (h Runner) Look(ctx context.Context, hook plan.HookObject, uid string) (health.Completion, error) {
	return h.Rules.Complete(ctx, h.Client, hook.Object, uid)
}

// Clear deletes the object that a run of a hook left. Gone tells that it does not exist any
// more, or is not of this deployment; an object that is still terminating is not gone.
func (h Runner) Clear(ctx context.Context, id inventory.ID) (gone bool, err error) {
	served, err := h.Client.Kinds().Preferred(ctx, id.GroupKind())
	if discovery.IsNoKind(err) {
		err = h.Client.Gone(ctx, id.GroupKind(), tenant.Ref{Namespace: id.Namespace, Name: id.Name})
		if err == nil {
			return true, nil
		}
	}
	if discovery.IsUnconfirmed(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("deleting what is left of the hook %s: %w", id, err)
	}
	ref := tenant.RefTo(id, served.Resource)
	live, err := h.Client.Metadata(ctx, ref)
	switch {
	case objecterror.NotServed(err):
		return false, nil
	case apierrors.IsNotFound(err):
		return true, nil
	case err == nil && !ownership.LiveOf(live, h.Owner).Ours(h.Owner):
		return true, nil
	case err == nil && ownership.LiveOf(live, h.Owner).GuardedNamespace(id) != "":
		return true, nil // it is kept
	case err == nil:
		gone, err = h.delete(ctx, ref, live)
	}
	if err != nil {
		return false, fmt.Errorf("deleting what is left of the hook %s: %w", id, objecterror.Of(id, err))
	}
	return gone, nil
}
