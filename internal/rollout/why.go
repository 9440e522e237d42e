// SPDX-License-Identifier: Apache-2.0

package rollout

import "github.com/satchel-dev/satchel/api/v1alpha1"

// explain says why a decision to go forward is as it is. The first line that holds decides:
//
//	all waves are complete, and no late cluster is left     Complete
//	suspended                                               Suspended
//	too many failures                                       MaxFailuresExceeded
//	all waves are complete                                  CatchingUp, or what keeps late clusters from it
//	clusters of the open wave began, or are in flight       Updating
//	the open wave has succeeded                             Soaking, ApprovalPending
//	clusters of the open wave could be started              the gate, or MaxUnavailableReached
//	clusters of the open wave are held                      Held
//	none of those that are left can be reached              NoClusterReachable
//	none succeeded                                          NoClusterSucceeded
func (d *decider) explain(halted bool, gate string, began, blocked int) {
	if d.out.Open == len(d.waves) {
		d.explainComplete(halted, began, blocked)
		return
	}
	counts := &d.waves[d.out.Open]
	switch {
	case d.in.Suspended:
		d.because(v1alpha1.ReasonSuspended)
	case halted:
		d.because(v1alpha1.ReasonMaxFailuresExceeded)
	case counts.inFlight > 0:
		d.because(v1alpha1.ReasonUpdating)
	case d.waits != "":
		d.because(d.waits)
	case counts.pending > 0 && gate != "":
		d.because(gate)
	case counts.pending > 0 && blocked > 0:
		d.because(v1alpha1.ReasonMaxUnavailableReached)
	case counts.pending > 0: // the record of starts is full
		d.because(v1alpha1.ReasonUpdating)
	case counts.held > 0:
		d.because(v1alpha1.ReasonHeld)
	default:
		d.because(counts.whyEnded())
	}
}

// whyEnded says why a wave has not succeeded of which no cluster can be started any more.
func (t *tally) whyEnded() string {
	if t.unreachable > 0 && (t.failed == 0 || t.updated > 0) {
		return v1alpha1.ReasonNoClusterReachable
	}
	return v1alpha1.ReasonNoClusterSucceeded
}

// explainComplete is explain when all waves are complete.
func (d *decider) explainComplete(halted bool, began, blocked int) {
	pending, inFlight := 0, 0
	for i := range d.waves {
		pending += d.waves[i].pending
		inFlight += d.waves[i].inFlight
	}
	switch {
	case pending == 0 && inFlight == 0:
		d.because(v1alpha1.ReasonComplete)
	case d.in.Suspended:
		d.because(v1alpha1.ReasonSuspended)
	case halted:
		d.because(v1alpha1.ReasonMaxFailuresExceeded)
	case began > 0, inFlight > 0:
		d.because(v1alpha1.ReasonCatchingUp)
	case blocked > 0:
		d.because(v1alpha1.ReasonMaxUnavailableReached)
	default:
		d.because(d.gateOfLate())
	}
}

// gateOfLate is what keeps late clusters of complete waves from being started.
func (d *decider) gateOfLate() string {
	for i := range d.waves {
		if d.waves[i].pending == 0 {
			continue
		}
		if gate := d.gates(i); gate != "" {
			return gate
		}
	}
	return v1alpha1.ReasonCatchingUp // the record of starts is full
}

// bringBack starts clusters at the current revision, in the reverse order of the waves, all waves at once. It needs no window, no
// approval and no budget of failures: the revision is known to be good.
func (d *decider) bringBack() {
	d.out.Open = len(d.waves)
	blocked, left, inFlight := 0, 0, 0
	for wave := len(d.waves) - 1; wave >= 0; wave-- {
		if !d.in.Suspended {
			_, stopped := d.start(wave, d.in.Current.Name, d.candidates(wave, anyCluster))
			blocked += stopped
		}
		left += d.waves[wave].pending
		inFlight += d.waves[wave].inFlight
	}
	switch {
	case left == 0 && inFlight == 0:
		d.out.Returned = true
		d.because(v1alpha1.ReasonRevisionRejected)
	case d.in.Suspended:
		d.because(v1alpha1.ReasonSuspended)
	case inFlight == 0 && blocked > 0:
		d.because(v1alpha1.ReasonMaxUnavailableReached)
	default:
		d.because(v1alpha1.ReasonRollingBack)
	}
}
