// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// goForward completes waves and starts clusters.
func (d *decider) goForward() {
	halted := d.halted()
	if halted && d.in.Strategy.onFailure == v1alpha1.RolloutRollback && d.in.Current != nil && d.in.Current.Digest != d.in.Update.Digest {
		d.out.Reject = true
		d.findOpen()
		d.because(v1alpha1.ReasonRollingBack)
		return
	}
	if halted {
		d.findOpen()
	} else {
		d.completeWaves()
	}
	gate := d.gatesOfOpenWave()
	began, blocked := 0, 0
	if !d.in.Suspended && !halted {
		began, blocked = d.startForward(gate)
	}
	d.explain(halted, gate, began, blocked)
	d.out.Complete = d.out.Open == len(d.waves)
}

// halted tells whether the failures of any wave stop the rollout.
func (d *decider) halted() bool {
	if d.in.Strategy.onFailure == v1alpha1.RolloutContinue {
		return false
	}
	for i := range d.waves {
		if d.overBudget(i) {
			return true
		}
	}
	return false
}

// findOpen finds the first wave that is not complete, without completing any.
func (d *decider) findOpen() {
	for d.out.Open = 0; d.out.Open < len(d.waves); d.out.Open++ {
		if d.out.Waves[d.out.Open].CompletionTime == nil {
			return
		}
	}
}

// completeWaves completes waves that have ended, and finds the open one. Complete waves never open again in a run.
func (d *decider) completeWaves() {
	for d.findOpen(); d.out.Open < len(d.waves); d.findOpen() {
		if !d.ends(d.out.Open) {
			return
		}
		d.out.Waves[d.out.Open].CompletionTime = d.now()
	}
}

// ends tells whether a wave is complete: it is empty, or it has succeeded, has soaked, is approved and was looked at once more.
func (d *decider) ends(wave int) bool {
	status := &d.out.Waves[wave]
	if len(d.waves[wave].clusters) == 0 {
		return true
	}
	if !d.succeeds(wave) {
		return false
	}
	if status.SuccessTime == nil {
		status.SuccessTime = d.now()
	}
	d.waits = d.afterSuccess(wave)
	return d.waits == ""
}

// succeeds tells whether all clusters of the wave have landed, with at least one success. Its failures are within the budget, or
// the rollout would be halted.
func (d *decider) succeeds(wave int) bool {
	counts := &d.waves[wave]
	waitsForUnreachable := counts.unreachable > 0 && d.in.Strategy.unreachable == v1alpha1.UnreachableWait
	return counts.pending == 0 && counts.inFlight == 0 && counts.held == 0 && counts.updated > 0 && !waitsForUnreachable
}

// afterSuccess is what a wave waits for that has succeeded; empty if nothing.
func (d *decider) afterSuccess(wave int) string {
	rules, status := &d.in.Strategy.Waves[wave], &d.out.Waves[wave]
	soaked := status.SuccessTime.Add(rules.soak)
	if d.in.Now.Before(soaked) {
		d.out.Until = soaked
		d.wake(soaked)
		return v1alpha1.ReasonSoaking
	}
	if rules.needsApprovalAfter() && !d.isCurrent() && !d.approved(wave, afterWave, d.in.Now) {
		return v1alpha1.ReasonApprovalPending
	}
	if !d.lookedAgain(wave, soaked) {
		return v1alpha1.ReasonSoaking
	}
	return ""
}

// lookedAgain tells whether the updated clusters of a wave have reconciled once more, so that the next wave does not begin with
// what was seen before the soak time, or before this process began.
func (d *decider) lookedAgain(wave int, soaked time.Time) bool {
	rules, status := &d.in.Strategy.Waves[wave], &d.out.Waves[wave]
	since := soaked
	if status.SuccessTime.Time.Before(d.in.Began) {
		since = latest(soaked, d.in.Began)
	} else if rules.soak == 0 {
		return true
	}
	d.out.LookToken = since.UTC().Format(time.RFC3339)
	asked, err := time.Parse(time.RFC3339, d.out.LookToken)
	if err != nil {
		return false
	}
	for _, i := range d.waves[wave].clusters {
		if d.seen[i].state != Updated {
			continue
		}
		handled, err := time.Parse(time.RFC3339, d.in.Clusters[i].Child.Handled)
		if err != nil || handled.Before(asked) || handled.After(d.in.Now) {
			d.out.Look = append(d.out.Look, d.in.Clusters[i].Name)
		}
	}
	return len(d.out.Look) == 0
}

// gatesOfOpenWave is what keeps clusters of the open wave from being started; empty if nothing.
func (d *decider) gatesOfOpenWave() string {
	if d.out.Open == len(d.waves) {
		return ""
	}
	return d.gates(d.out.Open)
}

// gates is what keeps clusters of a wave from getting the update revision; empty if nothing.
func (d *decider) gates(wave int) string {
	if d.in.Strategy.Waves[wave].needsApprovalBefore() && !d.isCurrent() && !d.approvedBefore(wave) {
		return v1alpha1.ReasonApprovalPending
	}
	return d.windowsOf(wave)
}

// windowsOf tells whether the windows keep clusters of a wave from being started.
func (d *decider) windowsOf(wave int) string {
	opens := d.in.Strategy.Waves[wave].windows.Opening(d.in.Now)
	if opens.Equal(d.in.Now) {
		return ""
	}
	if wave == d.out.Open {
		d.out.Until = opens
	}
	d.wake(opens)
	return v1alpha1.ReasonOutsideWindow
}

// isCurrent tells whether the update revision has completed all waves before.
func (d *decider) isCurrent() bool {
	return d.in.Current != nil && d.in.Current.Digest == d.in.Update.Digest
}

// approved tells whether an approval of a wave exists that was valid at a time, and no denial. It records its name.
func (d *decider) approved(wave int, when string, valid time.Time) bool {
	used := &d.out.Waves[wave].Approval
	if when == afterWave {
		used = &d.out.Waves[wave].EndApproval
	}
	plan := d.plan(wave, when)
	name := ""
	for i := range d.in.Approvals {
		approval := &d.in.Approvals[i]
		switch {
		case approval.Plan != plan:
		case approval.Denies:
			d.out.Denied = d.out.Denied || wave == d.out.Open
			return false
		case approval.Consumed && approval.Name != *used:
		case !approval.Expires.IsZero() && !approval.Expires.After(valid):
		case name == "" || approval.Name == *used: // the first one, or that of before
			name = approval.Name
		}
	}
	if name != "" || d.out.Waves[wave].StartTime == nil {
		*used = name
	}
	return name != ""
}

// plan is the digest that an approval of a wave has to name.
func (d *decider) plan(wave int, when string) string {
	current := ""
	if d.in.Current != nil {
		current = d.in.Current.Digest
	}
	return WavePlan(d.in.Namespace, d.in.Rollout, d.in.UID, d.in.Strategy.Waves[wave].Name, v1alpha1.WaveApproval(when), d.in.Update.Digest, current, d.in.Run)
}

// nextPlan is the digest that the next approval of a wave has to name; empty when it needs none any more.
func (d *decider) nextPlan(wave int) string {
	rules, status := &d.in.Strategy.Waves[wave], &d.out.Waves[wave]
	switch {
	case status.CompletionTime != nil || d.isCurrent():
		return ""
	case rules.needsApprovalBefore() && !d.approvedBefore(wave):
		return d.plan(wave, beforeWave)
	case rules.needsApprovalAfter():
		return d.plan(wave, afterWave)
	}
	return ""
}

// approvedBefore tells whether clusters of a wave may be started as far as approvals are concerned.
func (d *decider) approvedBefore(wave int) bool {
	valid := d.in.Now
	if began := d.out.Waves[wave].StartTime; began != nil {
		valid = began.Time
	}
	return d.approved(wave, beforeWave, valid)
}

// startForward starts clusters. It returns how many began in all, and how many of the open wave, or of late clusters when all
// waves are complete, could not because too many are unavailable.
func (d *decider) startForward(gate string) (began, blocked int) {
	if d.out.Open < len(d.waves) && gate == "" {
		began, blocked = d.start(d.out.Open, d.in.Update.Name, d.candidates(d.out.Open, anyCluster))
		if began > 0 && d.out.Waves[d.out.Open].StartTime == nil {
			d.out.Waves[d.out.Open].StartTime = d.now()
		}
	}
	for wave := range d.waves {
		switch {
		case wave == d.out.Open:
		case wave < d.out.Open || d.out.Waves[wave].CompletionTime != nil:
			late, stopped := d.startLate(wave)
			began += late
			if d.out.Open == len(d.waves) {
				blocked += stopped
			}
		default:
			began += d.startAtCurrent(wave)
		}
	}
	return began, blocked
}

// startLate starts clusters of a complete wave that joined, came back or changed since.
func (d *decider) startLate(wave int) (began, blocked int) {
	if d.waves[wave].pending+d.waves[wave].outdated == 0 || d.gates(wave) != "" {
		return 0, 0
	}
	return d.start(wave, d.in.Update.Name, d.candidates(wave, anyCluster))
}

// startAtCurrent starts clusters of a wave that is not open yet and that run neither the update nor the current revision.
func (d *decider) startAtCurrent(wave int) int {
	if d.in.Current == nil || d.waves[wave].pending+d.waves[wave].outdated == 0 || d.windowsOf(wave) != "" {
		return 0
	}
	began, _ := d.start(wave, d.in.Current.Name, d.candidates(wave, func(i int) bool {
		child := d.in.Clusters[i].Child
		if d.in.Clusters[i].InvalidCurrent != "" {
			return false
		}
		return child == nil || child.Revision != d.in.Current.Name && child.Revision != d.in.Update.Name
	}))
	return began
}

func (d *decider) now() *metav1.Time { return &metav1.Time{Time: d.in.Now} }

func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}
