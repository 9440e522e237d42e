// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// give applies an object of which the spec ignores some fields: with these fields when
// it creates the object, and without them afterwards. Before the fields are left out their
// ownership is released: the API server would remove fields that only our manager holds.
func (w writer) give(ctx context.Context, action plan.Action) (*tenant.Answer, error) {
	live, err := w.client.Metadata(ctx, refOf(action.ID, action.Resource))
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
	action.Desired, _ = plan.Without(action.Desired, action.Given)
	return w.claim(ctx, action)
}

// releaseTries is how often releaseIgnored is tried when other clients write the object at
// the same time.
const releaseTries = 10

// releaseIgnored removes the ignored fields from our managed fields entry; nil where they are not in it.
func (w writer) releaseIgnored(ctx context.Context, action plan.Action, live metav1.Object) (*tenant.Answer, error) {
	ref := refOf(action.ID, action.Resource)
	for try := 1; ; try++ {
		entries, held, err := withoutGiven(live.GetManagedFields(), w.owner.Manager(), action)
		if err != nil || !held {
			return nil, err
		}
		answer, err := w.client.Merge(ctx, ref, metadataPatch(live, map[string]any{"managedFields": entries}), w.owner.Manager())
		if !apierrors.IsConflict(err) || try == releaseTries {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(try) * 20 * time.Millisecond):
		}
		if live, err = w.client.Metadata(ctx, ref); err != nil {
			return nil, err
		}
	}
}

// withoutGiven removes the ignored fields from the manager's entry.
func withoutGiven(entries []metav1.ManagedFieldsEntry, manager string, action plan.Action) ([]metav1.ManagedFieldsEntry, bool, error) {
	var changed []metav1.ManagedFieldsEntry
	held := false
	for _, entry := range entries {
		if applied(entry, manager) {
			fields := decodeOwned(&entry)
			for _, pointer := range action.Given {
				held = fields.remove(action.Desired.Object, pointer) || held
			}
			raw, err := json.Marshal(fields)
			if err != nil {
				return nil, false, fmt.Errorf("releasing ignored fields: %w", err)
			}
			entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		}
		changed = append(changed, entry)
	}
	return changed, held, nil
}

// isGiven tells whether the spec ignores the field of a conflict.
func isGiven(action plan.Action, path string) bool {
	bare, some := plan.Without(action.Desired, action.Given)
	return some && hasPath(action.Desired, path) && !hasPath(bare, path)
}

// bareOf is an object without its ignored fields.
func bareOf(object plan.Object) *unstructured.Unstructured {
	bare, _ := plan.Without(object.Desired, object.Given)
	return bare
}
