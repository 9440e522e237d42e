// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// create applies an object on condition that it does not exist. It is not decided where the object has to be applied without the
// condition: it is the owner's already, as after an answer that was lost; or it does not exist, and the server does not understand
// the condition, or refuses the object. An object of another owner is a *RefusalError; one that may be adopted is left to the next
// plan. One that exists each time it is applied, and never when it is read, is an error that says so.
func (w Writer) create(ctx context.Context, action plan.Action) (answer *tenant.Answer, decided bool, err error) {
	for range Attempts {
		var deleted bool
		answer, decided, deleted, err = w.createOnce(ctx, action)
		if !deleted {
			return answer, decided, err
		}
	}
	return nil, true, fmt.Errorf("the object exists when it is applied, and does not when it is read: does another client create and delete it again and again? %w", err)
}

// createOnce is one attempt of create. deleted tells that the object existed when it was applied, and not when it was read.
func (w Writer) createOnce(ctx context.Context, action plan.Action) (answer *tenant.Answer, decided, deleted bool, err error) {
	ref := tenant.RefTo(action.ID, action.Resource)
	options := w.options(action)
	options.Create = true
	answer, err = w.Client.Apply(ctx, ref, fieldmanager.WithoutNulls(action.Desired), options)
	if err == nil || !exists(err) && !misunderstood(err) {
		return answer, !objecterror.NotServed(err), false, err
	}
	w.Client.Unlist(ref)
	live, readErr := w.Client.Metadata(ctx, ref)
	switch {
	case apierrors.IsNotFound(readErr) && exists(err):
		return nil, true, true, err
	case apierrors.IsNotFound(readErr):
		return nil, false, false, nil
	case readErr != nil:
		return nil, true, false, fmt.Errorf("reading the object, which may exist already: %w", readErr)
	}
	decided, err = w.judgeExisting(action, live)
	return nil, decided, false, err
}

// judgeExisting decides about an object that exists although it was absent when the plan was made.
func (w Writer) judgeExisting(action plan.Action, live *metav1.PartialObjectMetadata) (decided bool, err error) {
	seen := ownership.LiveOf(live, w.Owner)
	switch seen.ClaimOf(w.Owner, w.Protection) {
	case ownership.Owned:
		return false, nil
	case ownership.Adoptable:
		return true, &RefusalError{Why: fmt.Sprintf("%s was created by another client since the plan was made: the next attempt adopts it", action.ID)}
	}
	return true, &RefusalError{Why: violation.Collides(seen, action.ID, w.Owner).String()}
}

// exists tells that an API server refused to create an object because it exists.
func exists(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// misunderstood tells that an API server may have refused the condition itself.
func misunderstood(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) }
