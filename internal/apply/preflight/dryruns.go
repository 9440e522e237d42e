// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/rights"
)

// trial is a dry run of an object that seems to grant too much.
type trial struct {
	rights.Demand
	known bool // the rules are complete: what they lack is lacking
	lacks bool // in the end
	err   error
}

// tried has the API server dry-run the objects that seem to grant too much, for it knows
// more: the live objects, and the rules of roles that the ServiceAccount may not read. Beyond the
// limit the rules decide where they can, and else the dry run that comes before
// anything is granted.
func (a *permissionCheck) tried(ctx context.Context, needs []rights.Need, sure, unsure []rights.Demand) ([]rights.Demand, error) {
	trials := make([]trial, 0, len(sure)+len(unsure))
	for _, demand := range unsure {
		trials = append(trials, trial{Demand: demand})
	}
	for _, demand := range sure {
		trials = append(trials, trial{Demand: demand, known: !demand.Unknown})
	}
	unwritable, worth := a.unwritable(needs), []*trial(nil)
	for i := range trials {
		switch t := &trials[i]; {
		case unwritable[t.Object]:
			t.lacks = true
		case a.absent[t.Namespace]: // what the API server would say is known
			t.lacks = !t.Unknown
		default:
			t.lacks = t.known
			worth = append(worth, t)
		}
	}
	slices.SortStableFunc(worth, func(a, b *trial) int { return rank(a.known) - rank(b.known) })
	if err := a.try(ctx, worth[:min(len(worth), mostTries)]); err != nil {
		return nil, err
	}
	var lacking []rights.Demand
	for _, t := range trials {
		if t.lacks {
			lacking = append(lacking, t.Demand)
		}
	}
	return lacking, nil
}

func rank(late bool) int {
	if late {
		return 1
	}
	return 0
}

// unwritable are the objects that the ServiceAccount may not write in any case.
func (a *permissionCheck) unwritable(needs []rights.Need) map[inventory.ID]bool {
	objects := map[inventory.ID]bool{}
	for _, object := range a.plan.Unreadable {
		objects[object.ID] = true
	}
	for _, need := range needs {
		objects[need.Object] = objects[need.Object] || need.Right.Verb != "delete"
	}
	return objects
}

func (a *permissionCheck) try(ctx context.Context, trials []*trial) error {
	if len(trials) == 0 {
		return nil
	}
	actions := map[inventory.ID]plan.Action{}
	for action := range a.plan.Actions() {
		actions[action.ID] = *action
	}
	dry := dryrun.NewRunner(a.client, a.plan, func(inventory.Entry) []*unstructured.Unstructured { return nil })
	parallel.Each(ctx, parallel.Default, trials, func(ctx context.Context, t *trial) bool {
		t.lacks, t.err = lacks(t.Demand, dry.Object(ctx, actions[t.Object]))
		return t.lacks
	})
	errs := []error{ctx.Err()}
	for _, t := range trials {
		errs = append(errs, t.err)
	}
	return objecterror.Join(errs)
}

// lacks tells from the dry run of an object whether the account lacks
// what the object seems to demand. The first line that holds decides; an object that
// may not be written lacks it in any case.
//
//	it passes                              nothing is lacking
//	the API server is out of order         unknown: an error
//	it is forbidden                        the rules, or the permission to bind, are lacking
//	it depends on others of the same plan  the rules are lacking, where they are known
//	else                                   the object itself is wrong: the dry run says it
func lacks(demand rights.Demand, answer dryrun.Answer) (bool, error) {
	switch failed := answer.Failed; {
	case failed == nil:
		return false, nil
	case failed.Transient() && !answer.Unknown:
		return false, failed
	case failed.Reason == metav1.StatusReasonNotFound:
		return !demand.Unknown, nil
	default:
		return failed.Reason == metav1.StatusReasonForbidden, nil
	}
}
