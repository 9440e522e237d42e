// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/removal"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/spec/planning"
)

// ObjectErrors joins the errors of objects, a line each.
func ObjectErrors(failed []*objecterror.Error) error {
	lines := make([]string, 0, len(failed))
	for _, f := range failed {
		lines = append(lines, f.Error())
	}
	return errors.New(strings.Join(lines, "\n"))
}

// ObjectErrors joins the errors of objects, with a hint if a webhook of the bundle blocks them.
func (r *Resolved) ObjectErrors(ctx context.Context, of *Subject, listed *Listing, failed []*objecterror.Error) error {
	return errors.New(ObjectErrors(failed).Error() + removal.UnreachableWebhooks(ctx, r.Access.Client, of.Owner, listed.Inventory(), failed))
}

// Unplannable is the failure to make a plan: a spec that no plan can be made of stalls.
func Unplannable(err error) error {
	var invalid *planning.InvalidError
	if errors.As(err, &invalid) {
		return failure.Error{Reason: v1alpha1.ReasonPlanRefused, Stalled: true, Err: invalid.Err}
	}
	return err
}

// LeaveOut excludes objects that the API server rejects from the plan, and returns their errors.
func (d *Decided) LeaveOut(failed []*objecterror.Error) []string {
	out := map[inventory.ID]bool{}
	lines := make([]string, 0, len(failed))
	for _, f := range failed {
		lines = append(lines, f.Error())
		out[f.ID] = true
	}
	d.Plan.LeaveOut(func(o plan.Object) bool { return out[o.ID] })
	return lines
}
