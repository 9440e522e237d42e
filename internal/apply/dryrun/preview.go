// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/write"
)

// Forecast is the expected result of an apply for one object.
type Forecast struct {
	// Live is the object as it is; nil where it does not exist or, see Unread, cannot be read.
	Live   *unstructured.Unstructured
	Unread string
	// After is the object as a dry run returns it; nil where Untold
	// says why it does not, or the apply would fail.
	After  *unstructured.Unstructured
	Untold string
	// Failed says why the API server would refuse the object.
	Failed *objecterror.Error
	// Waits: the API server refuses it because of objects that the plan deletes first, and what it says.
	Waits string
	// Recreate: it would be deleted and created again, for fields of it are immutable.
	Recreate bool
	// Contested names the fields that other managers hold. The apply takes them back where
	// they were applied before; else it is refused.
	Contested string
	// Notes are those of Answer.
	Notes []string
}

// Preview asks the API server for the result of a plan for each object, and reads the
// objects that leave: as the client, and without writing anything. What the client may
// not do is part of the answer; an error means that the request failed.
//
// The content of the last apply is not known here: a field of an object that
// was applied before counts as ours.
func Preview(ctx context.Context, client *tenant.Client, p plan.Plan, o Options) (map[inventory.ID]Forecast, error) {
	o = o.defaulted()
	s := scout{dry: Runner{plan: newcomersOf(p), writer: write.Writer{Client: client, Owner: p.Owner, DryRun: true, Whole: true}}, recreate: o.Recreate}
	actions := make([]plan.Action, 0, p.Len())
	for action := range p.Actions() {
		actions = append(actions, *action)
	}
	for _, stages := range [][]plan.DeletionStage{p.PruneFirst, p.Prune} {
		for _, stage := range stages {
			for _, deletion := range stage.Deletions {
				if !deletion.Deletes() {
					continue
				}
				actions = append(actions, plan.Action{Object: plan.Object{ID: deletion.ID, Kind: deletion.Kind}, Verb: plan.Unchanged})
			}
		}
	}
	answers := parallel.Each(ctx, o.Parallelism, actions, s.object)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("previewing the plan: %w", err)
	}
	forecasts := make(map[inventory.ID]Forecast, len(actions))
	var errs []error
	for i, action := range actions {
		forecasts[action.ID] = answers[i].Forecast
		errs = append(errs, answers[i].err)
	}
	if err := objecterror.Join(errs); err != nil {
		return nil, fmt.Errorf("previewing the plan: %w", err)
	}
	s.successors(ctx, p, forecasts)
	return forecasts, nil
}

// successors moves refusals that may end with deletions of the plan to Waits.
func (s scout) successors(ctx context.Context, p plan.Plan, forecasts map[inventory.ID]Forecast) {
	var failed []*objecterror.Error
	for _, forecast := range forecasts {
		if forecast.Failed != nil {
			failed = append(failed, forecast.Failed)
		}
	}
	slices.SortFunc(failed, func(a, b *objecterror.Error) int { return a.ID.Compare(b.ID) })
	waiting, final := successors(ctx, s.dry.writer.Client, p, failed, nil)
	for _, f := range final {
		forecast := forecasts[f.ID]
		forecast.Failed = f
		forecasts[f.ID] = forecast
	}
	for _, f := range waiting.Refused {
		forecast := forecasts[f.ID]
		one := Successors{Refused: []*objecterror.Error{f}, Deletions: waiting.Deletions}
		forecast.Failed, forecast.Waits = nil, one.String()
		forecasts[f.ID] = forecast
	}
}

// scout reads one object after the other, and applies it as a dry run.
type scout struct {
	dry      Runner
	recreate bool
}

type scouted struct {
	Forecast
	err error
}

func (s scout) object(ctx context.Context, action plan.Action) scouted {
	var found scouted
	if action.Verb != plan.Create {
		live, err := s.dry.writer.Client.Get(ctx, tenant.RefTo(action.ID, action.Resource))
		switch {
		case apierrors.IsForbidden(err):
			found.Unread = "you may not get it"
		case err != nil && !apierrors.IsNotFound(err):
			found.err = fmt.Errorf("reading %s: %w", action.ID, err)
			return found
		default:
			found.Live = live
		}
	}
	switch {
	case !action.Writes():
		return found
	case s.dry.plan.hides(action):
		found.Untold = "the plan brings its namespace or its kind"
		return found
	}
	s.try(ctx, action, &found)
	return found
}

// try applies the object as a dry run: an existing one without its ignored fields.
func (s scout) try(ctx context.Context, action plan.Action, found *scouted) {
	desired := action.Desired
	if found.Live != nil {
		desired = fieldmanager.DesiredWithoutIgnored(action.Object)
	}
	s.dry.writer.GaveWay = func(_ inventory.ID, fields []fieldmanager.Field) { found.Notes = gaveWay(fields) }
	answer, err := s.dry.writer.Send(ctx, action, desired, false)
	if conflicts := fieldmanager.ConflictsOf(err); len(conflicts) > 0 {
		found.Contested = fieldmanager.Describe(conflicts)
		answer, err = s.insist(ctx, action, desired, conflicts)
	}
	if err != nil {
		s.failed(action, err, found)
		return
	}
	found.Notes = append(found.Notes, leaving(action, s.dry.writer.Resets(ctx, action))...)
	found.After, found.err = answer.Object()
}

// insist decides about conflicts as an apply does.
func (s scout) insist(ctx context.Context, action plan.Action, desired *unstructured.Unstructured, conflicts []fieldmanager.Conflict) (*tenant.Answer, error) {
	var earlier []*unstructured.Unstructured
	if action.Previous.Confirmed() {
		earlier = append(earlier, action.Desired)
	}
	return s.dry.writer.SendAgain(ctx, action, desired, conflicts, earlier)
}

// failed evaluates a refused dry run.
func (s scout) failed(action plan.Action, err error, found *scouted) {
	answer := s.dry.answer(action, err)
	switch {
	case answer.recreate && s.recreate && write.Recreatable(action):
		found.Recreate = true
	case answer.Unknown:
		found.Untold = "it depends on other objects of the plan"
	case apierrors.IsForbidden(err):
		found.Untold = "you may not try it: " + objecterror.OneLine(err.Error())
	case answer.Failed.Transient():
		found.err = answer.Failed
	default:
		found.Failed = answer.Failed
	}
}
