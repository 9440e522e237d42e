// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/write"
)

// Result is the result of a dry run.
type Result struct {
	Passed int
	// Failed objects would be refused: nothing must be written.
	Failed []*objecterror.Error
	// Successors would be refused because of objects that the plan deletes first. Then nothing is in Failed.
	Successors
	// Unknown objects depend on others of the same plan; they are decided in their stage.
	Unknown []inventory.ID
	// Recreate are objects that have to be deleted and created again, where the options
	// allow that. They are in neither of the other lists.
	Recreate []inventory.ID
	Warnings []string
	// Notes say what a reviewer would not see in the bundle: see Answer. Sorted.
	Notes []string
	// Accepted are the actions that the API server accepted. They are known beside an error as well.
	Accepted []plan.Action
}

// Run asks the API server whether it would accept what the plan writes. Objects
// that grant permissions are always tried, so that an escalation is refused
// before anything is granted; on an upgrade everything that changed is tried, so that a
// revision that cannot be applied does not affect the running one; and so are objects with fields of autoscalers that leave
// the bundle. An error means
// that a request failed.
func Run(ctx context.Context, client *tenant.Client, p plan.Plan, o Options) (Result, error) {
	o = o.defaulted()
	warnings := &tenant.Warnings{}
	dry := NewRunner(client, p, o.Earlier)
	check, asked := Result{}, []plan.Action(nil)
	for action := range p.Actions() {
		switch {
		case !worthTrying(*action, p.Upgrade):
		case dry.plan.hides(*action):
			check.Unknown = append(check.Unknown, action.ID)
		case o.Tried(*action):
			check.Passed++
		default:
			asked = append(asked, *action)
		}
	}
	answers := parallel.Each(tenant.WithWarnings(ctx, warnings), o.Parallelism, asked, dry.Object)
	for i, answer := range answers {
		for _, note := range answer.Notes {
			check.Notes = append(check.Notes, asked[i].ID.String()+": "+note)
		}
	}
	slices.Sort(check.Notes)
	accepted := acceptedOf(asked, answers)
	if err := ctx.Err(); err != nil {
		return Result{Accepted: accepted}, fmt.Errorf("trying the plan: %w", err)
	}
	errs := check.take(asked, answers, o, p.Keeping)
	if check.Warnings, check.Accepted = warnings.List(), accepted; !p.Keeping {
		check.Successors, check.Failed = successors(ctx, client, p, check.Failed, o.Gone)
	}
	if err := objecterror.Join(errs); err != nil {
		return Result{Accepted: accepted}, fmt.Errorf("trying the plan: %w", err)
	}
	return check, nil
}

// acceptedOf are the actions that were tried and accepted.
func acceptedOf(asked []plan.Action, answers []Answer) []plan.Action {
	var accepted []plan.Action
	for i, answer := range answers {
		if answer.accepted {
			accepted = append(accepted, asked[i])
		}
	}
	return accepted
}

// take sorts the answers into the check; a failed request is an error, unless the plan only
// keeps what is applied: then it concerns that object alone.
func (c *Result) take(asked []plan.Action, answers []Answer, o Options, keeping bool) (errs []error) {
	for i, answer := range answers {
		switch {
		case answer.recreate && o.Recreate && write.Recreatable(asked[i]):
			c.Recreate = append(c.Recreate, asked[i].ID)
		case answer.Failed == nil && !answer.Unknown:
			c.Passed++
		case answer.Unknown:
			c.Unknown = append(c.Unknown, asked[i].ID)
		case answer.Failed.Transient() && !keeping:
			errs = append(errs, answer.Failed)
		default:
			c.Failed = append(c.Failed, answer.Failed)
		}
	}
	return errs
}

// worthTrying tells whether the API server might refuse an action: content that was
// applied already, and is only repaired, it accepts.
func worthTrying(action plan.Action, upgrade bool) bool {
	known := action.Previous.Confirmed() && !action.Previous.Begun && action.Previous.Rendered == action.Rendered
	return action.Writes() && !known && (upgrade || plan.IsAccess(action.ID) || action.Handover.Leaves())
}

// newcomers are the new objects of a plan that others of its objects may depend on.
type newcomers struct {
	namespaces, definitions, roles map[string]bool
}

func newcomersOf(p plan.Plan) newcomers {
	n := newcomers{namespaces: map[string]bool{}, definitions: map[string]bool{}, roles: map[string]bool{}}
	for action := range p.Actions() {
		created := action.Verb == plan.Create || action.Verb == plan.Repair
		switch {
		case ownership.IsNamespace(action.ID):
			n.namespaces[action.Name] = created
		case crds.IsCRD(action.ID):
			n.definitions[action.Name] = action.Writes()
		case action.Kind.Resource.Resource == "roles", action.Kind.Resource.Resource == "clusterroles":
			n.roles[action.Name] = action.Writes()
		}
	}
	return n
}

// hides tells whether the API server cannot know the answer yet: the object goes
// into a new namespace or is of a kind that the plan brings or changes.
func (n newcomers) hides(action plan.Action) bool {
	return n.namespaces[action.Namespace] || n.definitions[action.Definition]
}

// Runner runs dry runs of the objects of one plan.
type Runner struct {
	plan   newcomers
	writer write.Writer
}

// NewRunner prepares dry runs of a plan's objects.
func NewRunner(client *tenant.Client, p plan.Plan, earlier func(inventory.Entry) []*unstructured.Unstructured) Runner {
	return Runner{plan: newcomersOf(p), writer: write.Writer{Client: client, Owner: p.Owner, Earlier: earlier, DryRun: true}}
}

// Answer is what the API server said about one object. Unknown: it cannot say it before the plan is applied.
type Answer struct {
	Failed   *objecterror.Error
	Unknown  bool
	recreate bool // fields of the object cannot change
	accepted bool // false also where the context ended before it was tried
	// Notes name fields of other managers, and defaults, that are removed, for they exclude what the bundle sets; and fields of
	// autoscalers that leave the bundle: which keep their values, and what the others become.
	Notes []string
}

// Object asks about one object.
func (d Runner) Object(ctx context.Context, action plan.Action) Answer {
	var notes []string
	writer := d.writer
	writer.GaveWay = func(_ inventory.ID, fields []fieldmanager.Field) { notes = gaveWay(fields) }
	_, err := writer.Write(ctx, action)
	if still := d.stillStored(ctx, action, err); still != nil {
		action.Desired = still
		_, err = writer.Write(ctx, action)
	}
	if err != nil {
		return d.answer(action, err)
	}
	notes = append(notes, leaving(action, writer.Resets(ctx, action))...)
	return Answer{accepted: len(notes) == 0, Notes: notes} // with notes it is tried again, so that they are not lost
}

// stillStored is what to try of a CRD that was refused because resources may be stored in versions that it lacks, where the apply
// stores them in another version first; nil otherwise.
func (d Runner) stillStored(ctx context.Context, action plan.Action, refused error) *unstructured.Unstructured {
	if !apierrors.IsInvalid(refused) || !crds.IsCRD(action.ID) || !action.Alters() {
		return nil
	}
	live, err := d.writer.Client.Get(ctx, tenant.RefTo(action.ID, action.Resource))
	if err != nil || crds.StoredBefore(live, action.Desired) == "" {
		return nil // the refusal says more
	}
	return crds.WithVersionsOf(live, action.Desired)
}

// gaveWay says which fields are removed.
func gaveWay(fields []fieldmanager.Field) []string {
	notes := make([]string, 0, len(fields))
	for _, field := range fields {
		if slices.Equal(field.Managers, []string{inventory.HandoverManager}) {
			continue // the apply takes it back before
		}
		notes = append(notes, fmt.Sprintf("removes %s, which excludes what the bundle sets", field))
	}
	return notes
}

// leaving says what becomes of the fields of autoscalers that leave the bundle.
func leaving(action plan.Action, resets []string) []string {
	var notes []string
	for _, field := range action.Handover.Kept {
		notes = append(notes, "keeps "+field.String())
	}
	for _, text := range resets {
		notes = append(notes, text+", because it leaves the bundle")
	}
	return notes
}

// answer evaluates a failed dry run.
func (d Runner) answer(action plan.Action, err error) Answer {
	var refused *write.RefusalError
	if errors.As(err, &refused) {
		return Answer{Failed: &objecterror.Error{ID: action.ID, Reason: "Conflict", Message: objecterror.OneLine(refused.Error())}}
	}
	return Answer{Failed: objecterror.Of(action.ID, err), Unknown: d.undecided(action, err), recreate: len(objecterror.Immutable(err)) > 0}
}

// undecided tells whether a refusal says nothing about the object itself: it is a
// binding to a role of the plan, the bundle contains the CRD of its kind, which
// is not served yet, or a webhook cannot answer a dry run.
func (d Runner) undecided(action plan.Action, err error) bool {
	if action.Definition != "" && objecterror.NotServed(err) {
		return true
	}
	role, _, _ := unstructured.NestedString(action.Desired.Object, "roleRef", "name")
	if d.plan.roles[role] && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)) {
		return true
	}
	webhookDown := apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
	noDryRun := apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
	return webhookDown || noDryRun
}
