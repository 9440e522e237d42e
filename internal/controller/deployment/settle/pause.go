// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"time"

	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Finished tells that no work is unfinished: everything is applied, healthy and pruned.
func (in *Input) Finished() bool {
	return in.Delivered.WaitsFor == "" && in.Delivered.Hooks.Waits == "" && (in.Settled.Health == nil || in.Settled.Health.Healthy() && len(in.Note.Planned.Prune) == 0)
}

// unhealthyPause is the pause before unhealthy objects are checked again. If their
// status is watched, only the reason why their Pods do not run may change unnoticed.
func (in *Input) unhealthyPause(looks int) time.Duration {
	switch {
	case !in.Note.Health.UnhealthySince.IsZero():
		return max(recovery-in.Now.Sub(in.Note.Health.UnhealthySince), time.Second/10)
	case in.watched():
		return min(watchedPause<<min(looks, 4), in.untilOverdue())
	}
	return PollPause(looks)
}

// watchedPause is the first pause between checks of unhealthy objects that are watched.
const watchedPause = 2 * time.Second

// untilOverdue is the time until the timeout to become healthy.
func (in *Input) untilOverdue() time.Duration {
	deadline := in.Note.Applying.Wrote
	if at := in.Object.Status.Applied.CompletionTime; at != nil && at.After(deadline) {
		deadline = at.Time
	}
	return max(time.Second, deadline.Add(effective.Timeout(&in.Object.Spec)).Sub(in.Now)+time.Second)
}

// PollPause is the pause before unfinished work is checked again: short at first, then
// longer.
func PollPause(looks int) time.Duration {
	return min(200*time.Millisecond<<min(looks, 5), 5*time.Second)
}

// Pause is the time until unfinished work is checked again, after a number of earlier checks.
func (in *Input) Pause(looks int) time.Duration {
	spec := &in.Object.Spec
	switch {
	case in.Delivered.WaitsFor != "" && in.waitedLong():
		return min(effective.RetryInterval(spec), effective.Interval(spec))
	case in.Delivered.WaitsFor != "", in.Delivered.Hooks.Waits != "":
		return PollPause(looks)
	case in.overdue():
		return min(effective.RetryInterval(spec), effective.Interval(spec))
	}
	return min(in.unhealthyPause(looks), effective.Interval(spec))
}
