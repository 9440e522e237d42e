// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Drift is drift that is not corrected.
type Drift struct {
	Compared bool     // the objects were compared with the cluster
	Found    []string // the differences, where drift is reported
}

// MostDrift bounds the list of drift in the status.
const MostDrift = 20

// LeaveDrift removes the repairs from a plan. Where drift is reported, the result says which fields of the first objects
// differ, and which clients changed them.
func LeaveDrift(ctx context.Context, tenant *tenant.Client, of *Subject, made *plan.Plan) (Drift, error) {
	var left []plan.Object
	for i := range made.Stages {
		for j := range made.Stages[i].Actions {
			action := &made.Stages[i].Actions[j]
			if action.Verb == plan.Repair {
				left = append(left, action.Object)
			}
			if action.Verb == plan.Repair || action.Verb == plan.Settle {
				action.Verb = plan.Unchanged
			}
		}
	}
	found := Drift{Compared: true}
	if !of.Warns() {
		return found, nil
	}
	for _, object := range left[:min(len(left), MostDrift)] {
		difference, err := fieldmanager.Explain(ctx, tenant, of.Owner, object)
		if err != nil {
			return found, err
		}
		found.Found = append(found.Found, difference.String())
	}
	slices.Sort(found.Found)
	return found, nil
}
