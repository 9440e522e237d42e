// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Check is the result of a dry run.
type Check struct {
	Passed int
	// Failed objects would be refused: nothing must be written.
	Failed []*ObjectError
	// Unknown objects depend on others of the same plan; they are decided in their stage.
	Unknown []inventory.ID
	// Recreate are objects that have to be deleted and created again, where the options
	// allow that. They are in neither of the other lists.
	Recreate []inventory.ID
	Warnings []string
	// Accepted are the actions that the API server accepted. They are known beside an error as well.
	Accepted []plan.Action
}

// DryRun asks the API server whether it would accept what the plan writes. Objects
// that grant permissions are always tried, so that an escalation is refused
// before anything is granted; on an upgrade everything that changed is tried, so that a
// revision that cannot be applied does not affect the running one. An error means
// that a request failed.
func DryRun(ctx context.Context, client *tenant.Client, p plan.Plan, o Options) (Check, error) {
	o = o.defaulted()
	warnings := &tenant.Warnings{}
	dry := dryRun{
		plan:   newIn(p),
		writer: writer{client: client, owner: p.Owner, earlier: o.Earlier, dryRun: true},
	}
	check, asked := Check{}, []plan.Action(nil)
	for _, action := range p.Actions() {
		switch {
		case !worthTrying(action, p.Upgrade):
		case dry.plan.hides(action):
			check.Unknown = append(check.Unknown, action.ID)
		case o.Tried(action):
			check.Passed++
		default:
			asked = append(asked, action)
		}
	}
	answers := parallel.Each(tenant.WithWarnings(ctx, warnings), o.Parallelism, asked, dry.object)
	accepted := acceptedOf(asked, answers)
	if err := ctx.Err(); err != nil {
		return Check{Accepted: accepted}, fmt.Errorf("trying the plan: %w", err)
	}
	errs := check.take(asked, answers, o, p.Keeping)
	check.Warnings, check.Accepted = warnings.List(), accepted
	if err := firstErrors(errs); err != nil {
		return Check{Accepted: accepted}, fmt.Errorf("trying the plan: %w", err)
	}
	return check, nil
}

// acceptedOf are the actions that were tried and accepted.
func acceptedOf(asked []plan.Action, answers []dryAnswer) []plan.Action {
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
func (c *Check) take(asked []plan.Action, answers []dryAnswer, o Options, keeping bool) (errs []error) {
	for i, answer := range answers {
		switch {
		case answer.recreate && o.Recreate && recreatable(asked[i]):
			c.Recreate = append(c.Recreate, asked[i].ID)
		case answer.failed == nil && !answer.unknown:
			c.Passed++
		case answer.unknown:
			c.Unknown = append(c.Unknown, asked[i].ID)
		case answer.failed.Transient() && !keeping:
			errs = append(errs, answer.failed)
		default:
			c.Failed = append(c.Failed, answer.failed)
		}
	}
	return errs
}

// worthTrying tells whether the API server might refuse an action: content that was
// applied already, and is only repaired, it accepts.
func worthTrying(action plan.Action, upgrade bool) bool {
	known := action.Previous.Confirmed() && !action.Previous.Begun && action.Previous.Rendered == action.Rendered
	return action.Writes() && !known && (upgrade || plan.IsAccess(action.ID))
}

// newcomers are the new objects of a plan that others of its objects may depend on.
type newcomers struct {
	namespaces, definitions, roles map[string]bool
}

func newIn(p plan.Plan) newcomers {
	n := newcomers{namespaces: map[string]bool{}, definitions: map[string]bool{}, roles: map[string]bool{}}
	for _, action := range p.Actions() {
		created := action.Verb == plan.Create || action.Verb == plan.Repair
		switch {
		case plan.IsNamespace(action.ID):
			n.namespaces[action.Name] = created
		case plan.IsDefinition(action.ID):
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

type dryRun struct {
	plan   newcomers
	writer writer
}

type dryAnswer struct {
	failed   *ObjectError
	unknown  bool
	recreate bool // fields of the object cannot change
	accepted bool // false also where the context ended before it was tried
}

func (d dryRun) object(ctx context.Context, action plan.Action) dryAnswer {
	_, err := d.writer.write(ctx, action)
	if err == nil {
		return dryAnswer{accepted: true}
	}
	return d.answer(action, err)
}

// answer evaluates a failed dry run.
func (d dryRun) answer(action plan.Action, err error) dryAnswer {
	var refused *refusal
	if errors.As(err, &refused) {
		return dryAnswer{failed: &ObjectError{ID: action.ID, Reason: "Conflict", Message: oneLine(refused.Error())}}
	}
	return dryAnswer{failed: objectError(action.ID, err), unknown: d.undecided(action, err), recreate: len(immutable(err)) > 0}
}

// undecided tells whether a refusal says nothing about the object itself: it is a
// binding to a role of the plan, the bundle contains the CRD of its kind, which
// is not served yet, or a webhook cannot answer a dry run.
func (d dryRun) undecided(action plan.Action, err error) bool {
	if action.Definition != "" && notServed(err) {
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
