// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ignore"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// applyGiving applies an object with fields that are left to others: those that the spec ignores, which it gets when it is
// created, and not afterwards, and those that leave the bundle because an autoscaler sets them. Before the fields are left out
// their ownership is released: the API server would remove or reset fields that only our manager holds.
func (w Writer) applyGiving(ctx context.Context, action plan.Action) (*tenant.Answer, error) {
	live, err := w.Client.Metadata(ctx, tenant.RefTo(action.ID, action.Resource))
	if apierrors.IsNotFound(err) {
		answer, err := w.claim(ctx, action)
		if err != nil {
			return nil, err
		}
		if freed, err := w.releaseGiven(ctx, action, &answer.Meta); err != nil || freed != nil {
			return freed, err
		}
		return answer, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := w.releaseGiven(ctx, action, live); err != nil {
		return nil, err
	}
	action.Desired, _ = ignore.Without(action.Desired, action.Given)
	return w.claim(ctx, action)
}

// releaseTries is how often releaseGiven is tried when other clients write the object at
// the same time.
const releaseTries = 10

// releaseGiven removes the fields that are left to others from our managed fields entry; nil where they are not in it.
func (w Writer) releaseGiven(ctx context.Context, action plan.Action, live metav1.Object) (*tenant.Answer, error) {
	ref := tenant.RefTo(action.ID, action.Resource)
	for try := 1; ; try++ {
		entries, held, err := fieldmanager.WithoutGiven(live.GetManagedFields(), w.Owner.Manager(), action)
		if err != nil || !held {
			return nil, err
		}
		answer, err := w.Client.Merge(ctx, ref, MetadataPatch(live, map[string]any{"managedFields": entries}), w.Owner.Manager())
		if !apierrors.IsConflict(err) || try == releaseTries {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(try) * 20 * time.Millisecond):
		}
		if live, err = w.Client.Metadata(ctx, ref); err != nil {
			return nil, err
		}
	}
}
