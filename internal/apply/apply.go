// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/write"
)

// Apply executes the stages of a plan one after the other, the objects of a
// stage in parallel. A failing object does not stop its stage, but no later stage
// starts, unless the plan brings nothing new: see plan.Plan.Keeps. Between the CRDs and
// the objects that need them it waits, bounded, until the API server serves them.
// Unchanged objects cause no requests.
//
// The plan's inventory must have been stored before. The outcome of each object is in
// the result, which is valid beside an error, too; an error means that the context ended.
func Apply(ctx context.Context, client *tenant.Client, p plan.Plan, o Options) (Result, error) {
	o = o.defaulted()
	warnings := &tenant.Warnings{}
	run := application{
		client:  client,
		owner:   p.Owner,
		plan:    p,
		options: o,
		kept:    &atomic.Int64{},
		writer: write.Writer{
			Client: client, Owner: p.Owner, Protection: p.Protection, Earlier: o.Earlier, Served: o.EstablishTimeout,
		},
		gaveWay: &sync.Map{},
		result: Result{
			Inventory: p.Inventory, Live: map[inventory.ID]*unstructured.Unstructured{}, Versions: map[inventory.ID]string{},
		},
	}
	run.writer.GaveWay = func(id inventory.ID, fields []fieldmanager.Field) { run.gaveWay.Store(id, fields) }
	err := run.stages(tenant.WithWarnings(ctx, warnings), p)
	run.result.Warnings = append(warnings.List(), run.result.Warnings...)
	return run.result, err
}

// application is one run of Apply.
type application struct {
	client  *tenant.Client
	owner   inventory.Owner
	options Options
	writer  write.Writer
	result  Result
	kept    *atomic.Int64 // bytes of the answers that are kept
	gaveWay *sync.Map     // []fieldmanager.Field by inventory.ID

	plan     plan.Plan
	switches switches // conversion webhooks that are switched on later
}

func (a *application) stages(ctx context.Context, p plan.Plan) error {
	ground := p.Groundwork()
	for i, stage := range p.Stages {
		if waits, err := a.waits(ctx, p, i, ground); waits || err != nil {
			return err
		}
		outcomes := parallel.Each(ctx, a.options.Parallelism, stage.Actions, a.object)
		a.record(stage, outcomes)
		if err := ctx.Err(); err != nil {
			a.result.Stage = stage.Name
			return fmt.Errorf("applying stage %q: %w", stage.Name, err)
		}
		if a.result.Stage != "" && (!p.Keeps() || stage.Trusted()) {
			return nil
		}
		if pending := a.established(ctx, p.Stages[:i+1], p.Stages[i+1:]); len(pending) > 0 {
			a.result.Stage, a.result.Pending = stage.Name, why(pending)
			if !p.Keeps() || ctx.Err() != nil {
				return ctx.Err()
			}
			p.LeaveOut(func(o plan.Object) bool { return pending[o.Definition] != "" })
		}
	}
	if waits, err := a.switchOn(ctx, p, len(p.Stages)); waits || err != nil {
		return err
	}
	if ground == len(p.Stages) {
		_, err := a.before(ctx, "hooks")
		return err
	}
	return nil
}

// waits tells whether a stage has to wait: for hooks, for what comes before its phase, or for a conversion webhook.
func (a *application) waits(ctx context.Context, p plan.Plan, at, ground int) (bool, error) {
	if at == ground {
		if waits, err := a.before(ctx, p.Stages[at].Name); waits || err != nil {
			return waits, err
		}
	}
	if held, err := a.held(ctx, p, at); held || err != nil {
		return held, err
	}
	return a.switchOn(ctx, p, at)
}

// before asks Options.Before whether the apply may start the stages that hooks precede.
func (a *application) before(ctx context.Context, stage string) (waits bool, err error) {
	if a.options.Before == nil {
		return false, nil
	}
	pending, err := a.options.Before(ctx)
	if pending != "" || err != nil {
		a.result.Stage, a.result.Pending = stage, pending
	}
	return pending != "", err
}

// record adds the outcomes of a stage to the result.
func (a *application) record(stage plan.Stage, outcomes []Outcome) {
	var entries []inventory.Entry
	failed := false
	for _, outcome := range outcomes {
		if outcome.Kind == "" {
			a.result.Stage = stage.Name // not begun: the context ended
			continue
		}
		a.result.Outcomes = append(a.result.Outcomes, outcome)
		if (outcome.reset || !outcome.entry.Fields.IsZero()) && !outcome.untracked {
			entries = append(entries, outcome.entry)
		}
		if outcome.version != "" {
			a.result.Versions[outcome.ID] = outcome.version
		}
		if outcome.live != nil {
			a.result.Live[outcome.ID] = outcome.live
		}
		if outcome.stops() {
			a.result.Stage = cmp.Or(a.result.Stage, stage.Name)
			failed = failed || outcome.Err != nil
			if a.result.Pending == "" && outcome.Kind == Pending {
				a.result.Pending = outcome.ID.String() + " " + outcome.Reason
			}
		}
	}
	if failed {
		a.result.Pending = ""
	}
	if len(entries) > 0 {
		a.result.Inventory = a.result.Inventory.With(entries...)
	}
}

// object executes one action.
func (a *application) object(ctx context.Context, action plan.Action) Outcome {
	outcome := Outcome{ID: action.ID, Kind: kindOf[action.Verb], Reason: action.Reason, untracked: action.Untracked}
	if !action.Writes() {
		return outcome
	}
	ready, waiting, err := a.prepare(ctx, action)
	if err != nil {
		return failed(outcome, err)
	}
	if waiting != "" {
		outcome.Kind, outcome.Reason = Pending, waiting
		return outcome
	}
	outcome = a.write(ctx, ready.Action)
	if ready.rest != nil && !outcome.stops() {
		a.switches.add(*ready.rest)
		outcome.entry = inventory.Entry{} // the content of the plan is not written yet
	}
	return outcome
}

// write sends what an action sends.
func (a *application) write(ctx context.Context, action plan.Action) Outcome {
	outcome := Outcome{ID: action.ID, Kind: kindOf[action.Verb], Reason: action.Reason, untracked: action.Untracked}
	answer, err := a.writer.Write(ctx, action)
	fields := objecterror.Immutable(err)
	switch {
	case len(fields) > 0 && a.options.Recreate && write.Recreatable(action):
		return a.recreate(ctx, action, outcome, fields)
	case err != nil:
		outcome = failed(outcome, err)
		if outcome.Kind == Conflict { // nothing was written, and the fields are not ours
			outcome.entry, outcome.reset = unbegun(action), true
		}
		return outcome
	}
	return a.wrote(action, outcome, answer)
}

// unbegun is the entry of an object as it was before the plan began.
func unbegun(action plan.Action) inventory.Entry {
	entry := action.Previous
	entry.ID, entry.Version, entry.Mark = action.ID, cmp.Or(entry.Version, action.Resource.Version), action.Mark
	return entry
}

func failed(outcome Outcome, err error) Outcome {
	outcome.Kind, outcome.Reason = Failed, ""
	var refused *write.RefusalError
	if errors.As(err, &refused) {
		outcome.Kind = Conflict
		outcome.Err = &objecterror.Error{ID: outcome.ID, Reason: "Conflict", Message: objecterror.OneLine(refused.Error())}
		return outcome
	}
	outcome.Err = objecterror.Of(outcome.ID, err)
	return outcome
}

// entryOf is what the inventory keeps of an object that was just written.
func entryOf(action plan.Action, answer *tenant.Answer, manager string) inventory.Entry {
	entry := inventory.Entry{
		ID:       action.ID,
		Version:  action.Resource.Version,
		Rendered: action.Rendered,
		Fields:   inventory.HashFields(answer.Meta.ManagedFields, manager),
		Seen:     inventory.HashSeen(&answer.Meta),
		Mark:     action.Mark,
	}
	if entry.Fields.IsZero() {
		entry.Fields = inventory.Untraceable
	}
	return entry
}
