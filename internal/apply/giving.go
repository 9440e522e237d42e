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

// give applies an object of which some fields are given to others: with them when it
// is created, and without them afterwards. Before they are left out we let go of them:
// the API server would remove what only we hold.
func (w writer) give(ctx context.Context, action plan.Action) (*tenant.Answer, error) {
	live, err := w.client.Metadata(ctx, refOf(action.ID, action.Resource))
	if apierrors.IsNotFound(err) {
		answer, err := w.claim(ctx, action)
		if err != nil {
			return nil, err
		}
		if freed, err := w.letGo(ctx, action, &answer.Meta); err != nil || freed != nil {
			return freed, err
		}
		return answer, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := w.letGo(ctx, action, live); err != nil {
		return nil, err
	}
	action.Desired, _ = plan.Without(action.Desired, action.Given)
	return w.claim(ctx, action)
}

// letGoTries is how often fields are let go of, when somebody writes the object at
// the same time.
const letGoTries = 10

// letGo takes the given fields out of our entry; nil where they are not in it.
func (w writer) letGo(ctx context.Context, action plan.Action, live metav1.Object) (*tenant.Answer, error) {
	ref := refOf(action.ID, action.Resource)
	for try := 1; ; try++ {
		entries, held, err := withoutGiven(live.GetManagedFields(), w.owner.Manager(), action)
		if err != nil || !held {
			return nil, err
		}
		answer, err := w.client.Merge(ctx, ref, metadataPatch(live, map[string]any{"managedFields": entries}), w.owner.Manager())
		if !apierrors.IsConflict(err) || try == letGoTries {
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

// withoutGiven takes the given fields out of the manager's entry.
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
				return nil, false, fmt.Errorf("letting go of fields: %w", err)
			}
			entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		}
		changed = append(changed, entry)
	}
	return changed, held, nil
}

// isGiven tells whether a field of a conflict is one that is given to others.
func isGiven(action plan.Action, path string) bool {
	bare, some := plan.Without(action.Desired, action.Given)
	return some && hasPath(action.Desired, path) && !hasPath(bare, path)
}

// bareOf is an object without what is given to others.
func bareOf(object plan.Object) *unstructured.Unstructured {
	bare, _ := plan.Without(object.Desired, object.Given)
	return bare
}
