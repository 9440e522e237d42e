// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/autoscaling"
)

// Scales tells whether an autoscaler of the bundle or on the cluster scales an object.
func (in Input) Scales(id inventory.ID) bool {
	for _, object := range in.Desired {
		if scaler, found := autoscaling.Of(object.Desired); found && scaler.Target == id {
			return true
		}
	}
	return slices.ContainsFunc(in.Autoscalers, func(scaler autoscaling.Autoscaler) bool { return scaler.Target == id })
}

// autoscalers are those that are there when the plan is carried out: those of the bundle, and those on the cluster that do not leave it.
func (in Input) autoscalers(desired []Object) []autoscaling.Autoscaler {
	if len(in.Scaling) == 0 {
		return nil
	}
	wanted := map[inventory.ID]bool{}
	var scalers []autoscaling.Autoscaler
	for _, object := range desired {
		wanted[object.ID] = true
		if scaler, found := autoscaling.Of(object.Desired); found {
			scalers = append(scalers, scaler)
		}
	}
	leaves := func(id inventory.ID) bool {
		return in.Previous.Has(id) && !wanted[id] && !in.Pruning.Disabled && !in.Keeping
	}
	for _, scaler := range in.Autoscalers {
		if !wanted[scaler.ID] && !leaves(scaler.ID) && !leaves(scaler.Parent) {
			scalers = append(scalers, scaler)
		}
	}
	return scalers
}
