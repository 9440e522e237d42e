// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// create applies an object on condition that it does not exist. It is not decided where the object has to be applied without the
// condition: it is the owner's already, as after an answer that was lost; or it does not exist, and the server refused the condition
// or the object. An object of another owner is a *RefusalError; one that may be adopted is left to the next plan.
func (w Writer) create(ctx context.Context, action plan.Action) (answer *tenant.Answer, decided bool, err error) {
	ref, options := tenant.RefTo(action.ID, action.Resource), w.options(action)
	options.Create = true
	answer, err = w.Client.Apply(ctx, ref, action.Desired, options)
	if err == nil || !mayExist(err) {
		return answer, !objecterror.NotServed(err), err
	}
	w.Client.Unlist(ref)
	live, err := w.Client.Metadata(ctx, ref)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, true, fmt.Errorf("reading the object, which may exist already: %w", err)
	}
	seen := ownership.LiveOf(live, w.Owner)
	switch seen.ClaimOf(w.Owner, w.Protection) {
	case ownership.Owned:
		return nil, false, nil
	case ownership.Adoptable:
		return nil, true, &RefusalError{Why: fmt.Sprintf("%s was created by another client since the plan was made: the next attempt adopts it", action.ID)}
	}
	return nil, true, &RefusalError{Why: violation.Collides(seen, action.ID, w.Owner).String()}
}

// mayExist tells that an API server may have refused to create an object because it exists, or because it does not understand
// the condition.
func mayExist(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}
