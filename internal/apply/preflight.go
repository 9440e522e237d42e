// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Permissions is what Preflight found out.
type Permissions struct {
	Violations []plan.Violation // sorted
	// Warnings say what was too much to ask. It is not held against the account.
	Warnings []string
}

// Preflight finds the permissions that the account lacks, all at once: to carry the
// plan out, to remove its objects one day, and to hold what its roles grant. It
// costs one question, one more for each namespace where rights in the whole cluster
// do not suffice, and one for each right of which the answers are not sure; however
// much that would be, the number of requests is bounded. A plan that writes nothing
// costs nothing. The API server's own answer to the writes stays decisive: what
// nobody can know before is not held against the account.
func Preflight(ctx context.Context, client *tenant.Client, p plan.Plan) (Permissions, error) {
	w := wantedBy(p)
	if len(w.needs) == 0 {
		return Permissions{}, nil
	}
	a := newAsking(client, p)
	missing, err := a.missing(ctx, w)
	if err != nil {
		return Permissions{}, fmt.Errorf("checking permissions: %w", err)
	}
	return Permissions{
		Violations: plan.SortViolations(append(misread(w.wrong), lacking(missing, client.Identity())...)),
		Warnings:   a.warnings(),
	}, nil
}

// wanted is what an account has to be allowed to do.
type wanted struct {
	needs   []rights.Need
	demands []rights.Demand
	wrong   []*rights.ObjectError // what cannot be granted by anybody
}

// wantedBy is what a plan asks of the account, in its order. A plan that brings or
// changes objects, or lets some go, asks for everything about all of its objects:
// it is the moment to say that they could not be removed. A plan that only keeps what
// is applied, a repair or the renewal of certificates, asks only for what it does,
// and leaves what its roles grant to the API server, for the other objects need not
// wait: care must not fail for want of a right that it does not use.
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
		for _, action := range p.Actions() {
			if action.Writes() {
				w.add(action.Object, writing(action)...)
			}
		}
		return w
	}
	objects, written := slices.Clone(p.Unreadable), map[inventory.ID]bool{}
	for _, object := range p.Unreadable {
		written[object.ID] = true
		w.needs = append(w.needs, rights.Lifelong(object, p.Pruning)...)
	}
	for _, action := range p.Actions() {
		objects, written[action.ID] = append(objects, action.Object), action.Writes()
		if action.Untracked {
			w.add(action.Object, "create", "get", "patch")
			continue
		}
		w.needs = append(w.needs, rights.Lifelong(action.Object, p.Pruning)...)
	}
	for _, hook := range p.Hooks {
		objects, written[hook.ID] = append(objects, hook.Object), true
		w.needs = append(w.needs, rights.Hook(hook.Object)...)
	}
	w.grants(objects, written)
	return w
}

// onlyKeeps tells whether a plan brings nothing new: its only updates are the
// Secrets of certificates and what trusts them, as a renewal changes them.
func onlyKeeps(p plan.Plan) bool {
	var issued []certificate.Request
	for _, action := range p.Actions() {
		if plan.IsCertificate(action.Object) {
			issued = append(issued, certificate.Request{Namespace: action.Namespace, Secret: action.Name})
		}
	}
	return !slices.ContainsFunc(p.Actions(), func(action plan.Action) bool {
		switch action.Verb {
		case plan.Create, plan.Adopt, plan.Recreate:
			return true
		case plan.Update:
			renewed := plan.IsCertificate(action.Object) || certificate.Trusts(action.Desired, issued)
			return !renewed || !action.Previous.Confirmed()
		}
		return false
	})
}

func (w *wanted) add(object plan.Object, verbs ...string) {
	w.needs = append(w.needs, rights.Verbs(object, verbs...)...)
}

// grants adds what the objects demand that are written and grant rights.
func (w *wanted) grants(objects []plan.Object, written map[inventory.ID]bool) {
	demands, wrong := rights.Demands(objects)
	for _, demand := range demands {
		if written[demand.Object] {
			w.demands = append(w.demands, demand)
		}
	}
	for _, err := range wrong {
		if written[err.Object] {
			w.wrong = append(w.wrong, err)
		}
	}
}

// writing are the verbs that an action takes. What is repaired may be gone.
func writing(action plan.Action) []string {
	if action.Verb == plan.Create || action.Verb == plan.Repair {
		return []string{"create", "get", "patch"}
	}
	return []string{"get", "patch"}
}

// leaving are the rights that letting an object go takes.
func leaving(deletion plan.Deletion) []rights.Need {
	object := plan.Object{ID: deletion.ID, Kind: deletion.Kind}
	switch deletion.How {
	case plan.Delete:
		return rights.Verbs(object, "delete", "get")
	case plan.Release:
		return rights.Verbs(object, "get", "patch")
	case plan.DeleteEmpty, plan.DeleteUnused, plan.Keep:
		return rights.Ending(object, plan.Pruning{Definitions: deletion.How == plan.DeleteUnused})
	}
	return nil
}

// misread are the roles that are not what they say.
func misread(wrong []*rights.ObjectError) []plan.Violation {
	var found []plan.Violation
	for _, err := range wrong {
		found = append(found, plan.Violation{Rule: plan.Invalid, Object: err.Object, Message: oneLine(err.Error())})
	}
	return found
}
