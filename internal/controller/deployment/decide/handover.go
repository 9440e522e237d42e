// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/controller/deployment/handover"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// mostWanted bounds how many objects a deployment wants of others: the API server is asked about each.
const mostWanted = 500

// wantOf tells the other deployments of the namespace which of their objects a plan contains, if the ServiceAccount may write
// them, and which released objects it takes: until these are applied, the one that released them may take them back. If the plan is
// refused for nothing else, it determines what it can give away in return.
func (st *Stage) wantOf(ctx context.Context, in *Input, observed plan.Input, made *plan.Plan) {
	if in.Keeping {
		return
	}
	wanted, only := wantedIn(in, observed, made)
	var objects []plan.Object
	for _, object := range observed.Desired {
		if wanted[object.ID] && len(objects) < mostWanted {
			objects = append(objects, object)
		}
	}
	permitted := parallel.Each(ctx, parallel.Default, objects, func(ctx context.Context, object plan.Object) bool { return mayTake(ctx, in, object) })
	var ids []inventory.ID
	for i, object := range objects {
		if permitted[i] {
			ids = append(ids, object.ID)
		}
	}
	cluster := handover.ClusterOf(in.Object, in.Listed.Current().Target())
	st.Handover.Want(in.Key(), cluster, ids)
	if only && len(ids) > 0 && st.automatic(ctx, in) {
		in.Decided.GivenAway = st.givenAway(in, cluster, made)
	}
}

// wantedIn are the objects of a plan that other deployments of the namespace have or have released, and whether the plan is refused
// for nothing else.
func wantedIn(in *Input, observed plan.Input, made *plan.Plan) (wanted map[inventory.ID]bool, only bool) {
	wanted, only = map[inventory.ID]bool{}, len(made.Violations) > 0
	for _, v := range made.Violations {
		held := v.Rule == violation.Collision && observed.Live[v.Object].TakenBy(in.Owner).Namespace == in.Owner.Namespace
		only = only && held
		if held {
			wanted[v.Object] = true
		}
	}
	for action := range made.Actions() {
		if action.Verb == plan.Adopt && observed.Live[action.ID].Orphaned {
			wanted[action.ID] = true
		}
	}
	return wanted, only
}

// automatic tells that no plan of the deployment waits for an approval, whatever is in it.
func (st *Stage) automatic(ctx context.Context, in *Input) bool {
	required, err := st.Approvals.Labels.Required(ctx, st.Approvals.Live, in.Object.Namespace)
	return err == nil && !required.Approval && effective.ApprovalMode(&in.Object.Spec) == v1alpha1.ApprovalAutomatic
}

// mayTake tells whether the API server would let the ServiceAccount write an object. A refusal for its content counts as permitted:
// the object must not be deleted because of a field.
func mayTake(ctx context.Context, in *Input, object plan.Object) bool {
	options := tenant.ApplyOptions{Manager: in.Owner.Manager(), Force: true, DryRun: true}
	_, err := in.Resolved.Access.Client.Apply(ctx, tenant.RefTo(object.ID, object.Resource), object.Desired, options)
	return err == nil || apierrors.IsInvalid(err) || apierrors.IsConflict(err)
}

// givenAway are the deletions of a plan of objects that other deployments want.
func (st *Stage) givenAway(in *Input, cluster handover.Cluster, made *plan.Plan) []plan.DeletionStage {
	given := plan.DeletionStage{Name: "handed over"}
	for _, stages := range [][]plan.DeletionStage{made.PruneFirst, made.Prune} {
		for _, stage := range stages {
			for _, deletion := range stage.Deletions {
				if _, wanted := st.Handover.Wanted(in.Key(), cluster, deletion.ID); wanted && deletion.Deletes() {
					given.Deletions = append(given.Deletions, deletion)
				}
			}
		}
	}
	if len(given.Deletions) == 0 {
		return nil
	}
	return []plan.DeletionStage{given}
}
