// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"

	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/fields"
)

// Forecast asks the API server for the result of each write of the plan, as the client that it was made with. Of a plan without a
// hash key, it finds out which objects differ from the bundle, and so has to come before the permissions of the plan are checked.
func (m *Made) Forecast(ctx context.Context) (map[inventory.ID]dryrun.Forecast, error) {
	forecasts, err := dryrun.Preview(ctx, m.client, m.Plan, dryrun.Options{Recreate: m.Observed.Pruning.Recreates})
	if err != nil {
		return nil, err
	}
	var recreated []inventory.ID
	for action := range m.Plan.Actions() {
		forecast := forecasts[action.ID]
		if forecast.Recreate {
			recreated = append(recreated, action.ID)
		}
		if forecast.After == nil || forecast.Live == nil {
			continue
		}
		changes, _ := fields.Diff(forecast.Live, forecast.After)
		switch {
		case len(changes) == 0 && action.Verb != plan.Adopt:
			action.Verb, action.Reason = plan.Unchanged, ""
		case action.Verb == plan.Update:
			action.Reason = "differs from the bundle"
		}
	}
	m.Plan.Recreates(recreated)
	return forecasts, nil
}
