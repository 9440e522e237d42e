// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// mostTrials bounds the dry runs that find the fields which have to give way.
const mostTrials = 24

// giveWay applies an object that the API server refused as invalid, if it is valid without fields of other managers, or
// defaults, inside the structures that the bundle sets. Dry runs find the fewest such fields. They are moved to our field manager
// on condition that the object is as it was read, and the apply that follows removes them while it writes the bundle's fields: the
// object is never written without either. It returns the refusal where nothing helps. A dry run writes nothing, and returns
// what the apply would.
func (w Writer) giveWay(ctx context.Context, action plan.Action, desired *unstructured.Unstructured, force bool, refused error) (*tenant.Answer, error) {
	ref := tenant.RefTo(action.ID, action.Resource)
	desired = desired.DeepCopy()
	desired.SetResourceVersion("") // of a condition on the state that was seen: there is a newer one here
	live, merged, err := w.merge(ctx, ref, desired)
	if err != nil {
		return nil, refused
	}
	search := trial{Writer: w, ref: ref, live: live, merged: merged, left: mostTrials}
	fields, err := search.fewest(ctx, refused)
	if err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return nil, refused
	}
	if w.DryRun {
		w.gaveWay(action, fields)
		return search.answer, nil
	}
	var answer *tenant.Answer
	for range releaseTries {
		if answer, err = w.replace(ctx, action, desired, live, merged, fields, force); !apierrors.IsConflict(err) {
			break
		}
		if live, merged, err = w.merge(ctx, ref, desired); err != nil {
			return nil, err
		}
		if fields = merged.Still(fields); len(fields) == 0 { // they were removed, or are ours already
			return w.send(ctx, action, desired, force)
		}
	}
	if err == nil {
		w.gaveWay(action, fields)
	}
	return answer, err
}

func (w Writer) gaveWay(action plan.Action, fields []fieldmanager.Field) {
	if w.GaveWay != nil {
		w.GaveWay(action.ID, fields)
	}
}

// merge reads an object, and merges the desired one with it.
func (w Writer) merge(ctx context.Context, ref tenant.Ref, desired *unstructured.Unstructured) (*unstructured.Unstructured, *fieldmanager.Merged, error) {
	live, err := w.Client.Get(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	merged, err := fieldmanager.Merge(live, desired, w.Owner.Manager())
	return live, merged, err
}

// replace takes the fields over, and applies the object.
func (w Writer) replace(
	ctx context.Context, action plan.Action, desired, live *unstructured.Unstructured, merged *fieldmanager.Merged, fields []fieldmanager.Field, force bool,
) (*tenant.Answer, error) {
	ref := tenant.RefTo(action.ID, action.Resource)
	entries, err := merged.TakeOver(fields)
	if err != nil {
		return nil, err
	}
	taken, err := w.Client.Merge(ctx, ref, MetadataPatch(live, map[string]any{"managedFields": entries}), w.Owner.Manager())
	if err != nil {
		return nil, err
	}
	desired = desired.DeepCopy()
	desired.SetResourceVersion(taken.Meta.ResourceVersion)
	options := w.options(action)
	options.Force = force
	return w.Client.Apply(ctx, ref, desired, options)
}

// trial finds by dry runs which fields have to give way.
type trial struct {
	Writer
	ref    tenant.Ref
	live   *unstructured.Unstructured
	merged *fieldmanager.Merged
	left   int // dry runs
	answer *tenant.Answer
}

// fewest are the fields without which the object is valid, none more than needed; nil if there are none.
func (t *trial) fewest(ctx context.Context, refused error) ([]fieldmanager.Field, error) {
	for _, group := range t.merged.Suspects(refused) {
		valid, err := t.valid(ctx, group)
		if err != nil {
			return nil, err
		}
		if valid {
			return t.reduce(ctx, group)
		}
	}
	return nil, nil
}

// reduce leaves out fields of a group that suffices as long as the rest does.
func (t *trial) reduce(ctx context.Context, group []fieldmanager.Field) ([]fieldmanager.Field, error) {
	for size := len(group) / 2; size > 0; size /= 2 {
		for from := 0; from < len(group) && len(group) > 1; {
			rest := append(append([]fieldmanager.Field(nil), group[:from]...), group[min(from+size, len(group)):]...)
			if len(rest) == 0 {
				break
			}
			valid, err := t.valid(ctx, rest)
			if err != nil {
				return nil, err
			}
			if valid {
				group = rest
			} else {
				from += size
			}
		}
	}
	return group, nil
}

// valid asks whether the API server accepts the object without the fields. Once there were too many questions, the answer is no.
func (t *trial) valid(ctx context.Context, without []fieldmanager.Field) (bool, error) {
	if t.left == 0 {
		return false, nil
	}
	t.left--
	content, err := t.merged.Without(without)
	if err != nil {
		return false, err
	}
	answer, err := t.tryContent(ctx, t.ref, t.live, content)
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return false, nil
	case err != nil:
		return false, err
	}
	t.answer = answer
	return true, nil
}

// tryContent asks what the API server makes of a live object with another content.
func (w Writer) tryContent(ctx context.Context, ref tenant.Ref, live *unstructured.Unstructured, content map[string]any) (*tenant.Answer, error) {
	patch := difference(live.Object, content)
	delete(patch, "metadata")
	if labels := difference(live.Object["metadata"], content["metadata"]); len(labels) > 0 {
		delete(labels, "managedFields")
		patch["metadata"] = labels
	}
	return w.Client.TryMerge(ctx, ref, patch, w.Owner.Manager())
}

// difference is the JSON merge patch that leads from one mapping to another.
func difference(from, to any) map[string]any {
	before, _ := from.(map[string]any)
	after, _ := to.(map[string]any)
	patch := map[string]any{}
	for name := range before {
		if _, stays := after[name]; !stays {
			patch[name] = nil
		}
	}
	for name, value := range after {
		was, existed := before[name]
		fields, isMap := value.(map[string]any)
		wasFields, wasMap := was.(map[string]any)
		switch {
		case isMap && wasMap:
			if below := difference(wasFields, fields); len(below) > 0 {
				patch[name] = below
			}
		case !existed || !reflect.DeepEqual(was, value):
			patch[name] = value
		}
	}
	return patch
}
