// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/autoscaling"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Resets says what becomes of fields that leave the bundle, and that autoscalers could set, where none does: ".spec.replicas 3 -> 1
// (default)". A dry run tells the default; without one it is not known.
func (w Writer) Resets(ctx context.Context, action plan.Action) []string {
	if len(action.Handover.Reset) == 0 {
		return nil
	}
	after, err := w.dropped(ctx, action)
	said := make([]string, 0, len(action.Handover.Reset))
	for _, field := range action.Handover.Reset {
		text := fmt.Sprintf("%s %s -> its default", field.Path, jsonOf(field.Value))
		if err == nil {
			text = fmt.Sprintf("%s %s -> %s", field.Path, jsonOf(field.Value), valueAfter(after, field))
		}
		if field.Unread != "" {
			text += ", unless an autoscaler sets it, which is not known: " + field.Unread
		}
		said = append(said, text)
	}
	return said
}

// dropped is what the API server makes of the object without the fields.
func (w Writer) dropped(ctx context.Context, action plan.Action) (*unstructured.Unstructured, error) {
	ref := tenant.RefTo(action.ID, action.Resource)
	live, err := w.Client.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	content, err := fieldmanager.Dropped(live, action.Handover.Reset)
	if err != nil {
		return nil, err
	}
	answer, err := w.tryContent(ctx, ref, live, content)
	if err != nil {
		return nil, err
	}
	return answer.Object()
}

func valueAfter(object *unstructured.Unstructured, field autoscaling.Leaving) string {
	value, found := fieldmanager.ValueAt(object, field.Path)
	if !found {
		return "none"
	}
	return jsonOf(value) + " (default)"
}

func jsonOf(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	return string(encoded)
}
