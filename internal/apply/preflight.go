// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Preflight finds the permissions that the account lacks, all at once: to carry the
// plan out, to remove its objects one day, and to hold what its roles grant. It
// costs one question a namespace, and one more for each right of which the answers
// are not sure. A plan that writes nothing costs nothing. The API server's own
// answer to the writes stays decisive: what nobody can know before is not held
// against the account.
func Preflight(ctx context.Context, client *tenant.Client, p plan.Plan) ([]plan.Violation, error) {
	wanted, wrong := wantedBy(p)
	found := misread(wrong)
	if len(wanted.needs)+len(wanted.demands) == 0 {
		return found, nil
	}
	asking := asking{client: client, plan: p}
	missing, err := asking.missing(ctx, wanted)
	if err != nil {
		return nil, fmt.Errorf("checking permissions: %w", err)
	}
	return plan.SortViolations(append(found, lacking(missing, client.Identity())...)), nil
}

// wanted is what an account has to be allowed to do.
type wanted struct {
	needs   []rights.Need
	demands []rights.Demand
}

// wantedBy is what a plan asks of the account, in its order. A plan that brings or
// changes objects, or lets some go, asks for everything about all of its objects:
// it is the moment to say that they could not be removed. A repair asks only for
// what it does: care must not fail for want of a right that it does not use.
func wantedBy(p plan.Plan) (wanted, []*rights.ObjectError) {
	changes := p.Count(plan.Create, plan.Update) > 0 || len(p.Unreadable) > 0
	var w wanted
	for _, stage := range p.Prune {
		for _, deletion := range stage.Deletions {
			verbs := leaving(deletion)
			changes = changes || len(verbs) > 0
			w.needs = append(w.needs, rights.Verbs(plan.Object{ID: deletion.ID, Kind: deletion.Kind}, verbs...)...)
		}
	}
	written := map[inventory.ID]bool{}
	objects := slices.Clone(p.Unreadable)
	for _, action := range p.Actions() {
		objects = append(objects, action.Object)
		written[action.ID] = action.Writes()
		switch {
		case action.Untracked, !changes && action.Verb == plan.Repair:
			w.needs = append(w.needs, rights.Verbs(action.Object, "create", "get", "patch")...)
		case changes:
			w.needs = append(w.needs, rights.Verbs(action.Object, rights.Installing(action.Object)...)...)
		case action.Writes():
			w.needs = append(w.needs, rights.Verbs(action.Object, "get", "patch")...)
		}
	}
	for _, object := range p.Unreadable {
		written[object.ID] = true
		w.needs = append(w.needs, rights.Verbs(object, rights.Installing(object)...)...)
	}
	demands, wrong := rights.Demands(objects)
	for _, demand := range demands {
		if written[demand.Object] {
			w.demands = append(w.demands, demand)
		}
	}
	return w, wrong
}

// leaving are the verbs that letting an object go takes.
func leaving(deletion plan.Deletion) []string {
	switch deletion.How {
	case plan.Delete:
		return []string{"delete", "get"}
	case plan.Release:
		return []string{"get", "patch"}
	case plan.DeleteEmpty, plan.Keep:
		return rights.Leaving(plan.Object{ID: deletion.ID})
	}
	return nil
}

// misread are the roles that are not what they say. Nothing is said of them when
// nothing is written.
func misread(wrong []*rights.ObjectError) []plan.Violation {
	var found []plan.Violation
	for _, err := range wrong {
		found = append(found, plan.Violation{Rule: plan.Invalid, Object: err.Object, Message: oneLine(err.Error())})
	}
	return found
}
