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

// applyIgnoring applies an object of which the spec ignores some fields: with these fields when
// it creates the object, and without them afterwards. Before the fields are left out their
// ownership is released: the API server would remove fields that only our manager holds.
func (w Writer) applyIgnoring(ctx context.Context, action plan.Action) (*tenant.Answer, error) {
	live, err := w.Client.Metadata(ctx, tenant.RefTo(action.ID, action.Resource))
	if apierrors.IsNotFound(err) {
		answer, err := w.claim(ctx, action)
		if err != nil {
			return nil, err
		}
		if freed, err := w.releaseIgnored(ctx, action, &answer.Meta); err != nil || freed != nil {
			return freed, err
		}
		return answer, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := w.releaseIgnored(ctx, action, live); err != nil {
		return nil, err
	}
	action.Desired, _ = ignore.Without(action.Desired, action.Given)
	return w.claim(ctx, action)
}

// releaseTries is how often releaseIgnored is tried when other clients write the object at
// the same time.
const releaseTries = 10

// releaseIgnored removes the ignored fields from our managed fields entry; nil where they are not in it.
func (w Writer) releaseIgnored(ctx context.Context, action plan.Action, live metav1.Object) (*tenant.Answer, error) {
	ref := tenant.RefTo(action.ID, action.Resource)
	for try := 1; ; try++ {
		entries, held, err := fieldmanager.WithoutIgnored(live.GetManagedFields(), w.Owner.Manager(), action)
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
