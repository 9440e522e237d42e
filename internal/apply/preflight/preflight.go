// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Result is the result of Preflight.
type Result struct {
	Violations []violation.Violation // sorted
	// Missing are the permissions that the violations describe.
	Missing rights.Missing
	// Warnings name the permissions that were not checked because of the limits.
	Warnings []string
}

// Check finds the permissions that the account lacks, all at once: to execute the
// plan, to remove its objects one day, and to grant what its roles grant. It
// costs one request, one more for each namespace where cluster-wide permissions
// do not suffice, and one for each permission of which the answers are not sure; the
// number of requests is bounded. A plan that writes nothing causes no requests. The API
// server's own answer to the writes is decisive: a permission that cannot be determined
// beforehand is not reported as missing.
func Check(ctx context.Context, client *tenant.Client, p plan.Plan) (Result, error) {
	w := wantedBy(p)
	if len(w.needs) == 0 {
		return Result{}, nil
	}
	a := newPermissionCheck(client, p)
	missing, err := a.missing(ctx, w)
	if err != nil {
		return Result{}, fmt.Errorf("checking permissions: %w", err)
	}
	return Result{
		Violations: violation.SortViolations(append(misread(w.wrong), missingPermissions(missing, client.Identity())...)),
		Missing:    missing,
		Warnings:   a.warnings(),
	}, nil
}

// wanted are the permissions that a plan needs.
type wanted struct {
	needs   []rights.Need
	demands []rights.Demand
	wrong   []*rights.ObjectError // roles that no account can grant
}

// verbsOfObject is how many permissions most objects need: see rights.Lifelong.
const verbsOfObject = 4

// wantedBy returns the permissions that a plan needs, in its order. A plan that adds,
// changes, deletes or releases objects needs the permissions for all of its objects, also
// to remove them: this is the time to report that they could not be removed. A plan that
// only keeps what is applied, a repair or the renewal of certificates, needs only the
// permissions that it uses, and leaves the escalation check of its roles to the API server:
// a missing permission that it does not use must not stop drift correction.
func wantedBy(p plan.Plan) wanted {
	var w wanted
	for _, stage := range slices.Concat(p.PruneFirst, p.Prune) {
		for _, deletion := range stage.Deletions {
			w.needs = append(w.needs, leaving(deletion)...)
		}
	}
	if p.Keeping || len(w.needs)+len(p.Unreadable) == 0 && onlyKeeps(p) {
		for _, object := range p.Unreadable {
			w.add(object, "get")
		}
		for action := range p.Actions() {
			if action.Writes() {
				w.add(action.Object, writing(*action)...)
			}
		}
		return w
	}
	objects := slices.Grow(slices.Clone(p.Unreadable), p.Len())
	w.needs = slices.Grow(w.needs, verbsOfObject*p.Len())
	for _, object := range p.Unreadable {
		w.needs = append(w.needs, rights.Lifelong(object, p.Pruning)...)
	}
	for action := range p.Actions() {
		objects = append(objects, action.Object)
		if action.Untracked {
			w.add(action.Object, "create", "get", "patch")
			continue
		}
		w.needs = append(w.needs, rights.Lifelong(action.Object, p.Pruning)...)
	}
	for _, hook := range p.Hooks {
		objects = append(objects, hook.Object)
		w.needs = append(w.needs, rights.Hook(hook.Object)...)
	}
	w.grants(p, objects)
	return w
}

// onlyKeeps tells whether a plan brings nothing new: its only updates are the
// Secrets of certificates and the objects that trust them, as in a renewal.
func onlyKeeps(p plan.Plan) bool {
	var issued []certificate.Request
	for action := range p.Actions() {
		if plan.IsCertificate(action.Object) {
			issued = append(issued, certificate.Request{Namespace: action.Namespace, Secret: action.Name})
		}
	}
	for action := range p.Actions() {
		switch action.Verb {
		case plan.Create, plan.Adopt, plan.Recreate:
			return false
		case plan.Update:
			renewed := plan.IsCertificate(action.Object) || certificate.Trusts(action.Desired, issued)
			if !renewed || !action.Previous.Confirmed() {
				return false
			}
		}
	}
	return true
}

func (w *wanted) add(object plan.Object, verbs ...string) {
	w.needs = append(w.needs, rights.Verbs(object, verbs...)...)
}

// grants adds the demands of the objects that grant permissions, unless the plan leaves them as they are.
func (w *wanted) grants(p plan.Plan, objects []plan.Object) {
	demands, wrong := rights.Demands(objects)
	if len(demands)+len(wrong) == 0 {
		return
	}
	stays := map[inventory.ID]bool{}
	for action := range p.Actions() {
		if !action.Writes() {
			stays[action.ID] = true
		}
	}
	w.demands = slices.DeleteFunc(demands, func(d rights.Demand) bool { return stays[d.Object] })
	w.wrong = slices.DeleteFunc(wrong, func(err *rights.ObjectError) bool { return stays[err.Object] })
}

// writing are the verbs that an action needs. A repaired object may be gone.
func writing(action plan.Action) []string {
	if action.Verb == plan.Create || action.Verb == plan.Repair {
		return []string{"create", "get", "patch"}
	}
	return []string{"get", "patch"}
}

// leaving are the permissions that deleting or releasing an object needs.
func leaving(deletion plan.Deletion) []rights.Need {
	object := plan.Object{ID: deletion.ID, Kind: deletion.Kind}
	switch deletion.How {
	case plan.Delete:
		return rights.Verbs(object, "delete", "get")
	case plan.Release:
		return rights.Verbs(object, "get", "patch")
	case plan.DeleteEmpty, plan.DeleteUnused, plan.Keep:
		return rights.Ending(object, pruning.Policy{Definitions: deletion.How == plan.DeleteUnused})
	}
	return nil
}

// misread are the roles that cannot be decoded.
func misread(wrong []*rights.ObjectError) []violation.Violation {
	var found []violation.Violation
	for _, err := range wrong {
		found = append(found, violation.Violation{Rule: violation.Invalid, Object: err.Object, Message: objecterror.OneLine(err.Error())})
	}
	return found
}
