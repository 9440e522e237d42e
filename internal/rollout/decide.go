// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Revision identifies a revision in a decision.
type Revision struct {
	// Name is the first 10 hexadecimal digits of Digest.
	Name   string
	Digest string
	// Content is the digest of the content of the source, as histories of BundleDeployments have it.
	Content string
}

// Approval is a BundleApproval of the rollout.
type Approval struct {
	Name    string
	Plan    string
	Denies  bool
	Expires time.Time // zero if it does not
	// Consumed tells that it was used. It counts only for the wave that has it in its status: a rollout that lost its status
	// numbers its runs from the beginning, and the plans of these would be approved already.
	Consumed bool
	// Approver is the user who decided; empty if that is not known.
	Approver string
}

// Input is all that a decision depends on.
type Input struct {
	Namespace string
	Rollout   string
	UID       string
	// Now is the time, and Began when this process began to watch by the present clock: one of which the clock was set begins again.
	Now   time.Time
	Began time.Time

	Strategy  *Strategy
	Suspended bool
	// Update is the revision that the waves get; Current the last one that completed all of them, nil if there is none.
	Update  Revision
	Current *Revision
	// Return brings all clusters back to Current: Update was rejected. It needs Current.
	Return bool

	// Run, Starts, Starting and Waves are those of the status that the decision will be recorded in.
	Run      int64
	Starts   int64
	Starting []v1alpha1.RolloutStart
	Waves    []v1alpha1.RolloutWaveStatus

	Approvals []Approval
	// Abandon replaces the BundleDeployments of clusters that were rebuilt: spec.removal.whenClusterGone.
	Abandon bool
	// Known tells that all clusters could be listed. None is replaced otherwise.
	Known bool
	// Clusters in any order, with unique names.
	Clusters []Fact
}

// Decision is what to record, and then to do.
type Decision struct {
	// Starts are recorded in status.starting, and then carried out. The last number is the new status.starts.
	Starts []v1alpha1.RolloutStart
	// Waves are status.waves.
	Waves []v1alpha1.RolloutWaveStatus
	// Reject records Update as status.rejectedRevision: the next decision returns.
	Reject bool
	// Complete tells that all waves are complete: Update becomes the current revision.
	Complete bool
	// Returned tells that a return has brought back all clusters that it can.
	Returned bool
	// Denied tells that Why is ApprovalPending because of a denial.
	Denied bool
	// Why is the reason of the condition RolledOut; never empty. Until is when it ends, where that is known.
	Why   string
	Until time.Time
	// Recheck is when to decide again without an event; 0 if only events matter.
	Recheck time.Duration
	// Look are the clusters that have to be asked to reconcile, by the value LookToken of the annotation
	// reconcile.fluxcd.io/requestedAt.
	Look      []string
	LookToken string
	// Open is the index of the open wave, or the number of waves when all are complete.
	Open int
	// Rebuilt are clusters that are another one than the one that their objects are in, by name.
	Rebuilt []Rebuilt

	states []observed
}

// State is the state of the cluster with an index in Input.Clusters, and the reason and the time that it has.
func (d *Decision) State(i int) (state State, reason string, since time.Time) {
	return d.states[i].state, d.states[i].reason, d.states[i].since
}

// tally counts the clusters of a wave.
type tally struct {
	clusters    []int // their indexes
	updated     int
	inFlight    int
	pending     int // those that can be started
	outdated    int // those that cannot be reached, and can be started
	held        int
	failed      int
	unreachable int
	unavailable int
}

// decider makes one decision.
type decider struct {
	in      *Input
	out     *Decision
	seen    []observed
	waves   []tally
	number  int64 // the last start number
	places  int   // free entries of status.starting
	recheck time.Time
	waits   string // what the open wave waits for after it has succeeded
}

// Decide decides what to do next. Equal input gives an equal decision.
//
// In a return, every cluster that does not have the current revision gets it. Otherwise clusters of the open wave, and those of
// complete waves that joined late, get the update revision, and clusters of later waves without any of both the current one. The
// open wave is the first that is not complete.
func Decide(in *Input) *Decision {
	d := &decider{in: in, out: &Decision{}, number: in.Starts, places: max(v1alpha1.MaxStarting-len(in.Starting), 0)}
	d.count()
	d.copyWaves()
	if in.Return && in.Current != nil {
		d.bringBack()
	} else {
		d.goForward()
	}
	d.findRebuilt()
	d.report()
	return d.out
}

// updateAim is the update revision.
func (in *Input) updateAim() aim {
	return aim{
		in.Update.Name, in.Update.Content,
		func(f *Fact) string { return f.Wanted },
		func(f *Fact) string { return f.Invalid },
	}
}

// currentAim is the current revision.
func (in *Input) currentAim() aim {
	return aim{
		in.Current.Name, in.Current.Content,
		func(f *Fact) string { return f.WantedCurrent },
		func(f *Fact) string { return f.InvalidCurrent },
	}
}

// count observes all clusters, with regard to the revision that they are to get.
func (d *decider) count() {
	at := d.in.updateAim()
	if d.in.Return && d.in.Current != nil {
		at = d.in.currentAim()
	}
	recorded := map[string]int64{}
	for _, entry := range d.in.Starting {
		recorded[entry.Cluster] = max(recorded[entry.Cluster], entry.Start)
	}
	d.seen = make([]observed, len(d.in.Clusters))
	d.waves = make([]tally, len(d.in.Strategy.Waves))
	for i := range d.in.Clusters {
		fact := &d.in.Clusters[i]
		d.seen[i] = d.observe(fact, at, recorded[fact.Name])
		if d.seen[i].next.After(d.in.Now) {
			d.wake(d.seen[i].next)
		}
		if fact.Wave >= 0 && fact.Wave < len(d.waves) {
			d.waves[fact.Wave].add(i, &d.seen[i])
		}
	}
	d.out.states = d.seen
}

func (t *tally) add(index int, seen *observed) {
	t.clusters = append(t.clusters, index)
	if seen.inFlight {
		t.inFlight++
	}
	if !seen.ready {
		t.unavailable++
	}
	switch seen.state {
	case Pending:
		t.pending++
	case Held:
		t.held++
	case Failed:
		t.failed++
	case Unreachable:
		t.unreachable++
		if seen.isOutdated {
			t.outdated++
		}
	case Updated:
		t.updated++
	}
}

// copyWaves begins with what the status has of the waves, by name.
func (d *decider) copyWaves() {
	for i := range d.in.Strategy.Waves {
		name := d.in.Strategy.Waves[i].Name
		status := v1alpha1.RolloutWaveStatus{Name: name}
		if at := slices.IndexFunc(d.in.Waves, func(w v1alpha1.RolloutWaveStatus) bool { return w.Name == name }); at >= 0 {
			was := &d.in.Waves[at]
			status.StartTime = d.past(was.StartTime)
			status.SuccessTime = d.past(was.SuccessTime)
			status.CompletionTime = d.past(was.CompletionTime)
			status.Approval = was.Approval
			status.EndApproval = was.EndApproval
		}
		d.out.Waves = append(d.out.Waves, status)
	}
}

// past is a time that this rollout recorded. One in the future is of a clock that went back since: it counts from now.
func (d *decider) past(recorded *metav1.Time) *metav1.Time {
	if recorded != nil && recorded.After(d.in.Now) {
		return d.now()
	}
	return recorded
}

// start begins clusters of a wave with a revision, as many as its limits and the record allow, in the order of the indexes. It
// returns how many began, and how many could not because too many are unavailable.
func (d *decider) start(wave int, revision string, candidates []int) (began, blocked int) {
	rules, counts := &d.in.Strategy.Waves[wave], &d.waves[wave]
	slots := rules.maxConcurrency.roundedUp(len(counts.clusters)) - counts.inFlight
	room := rules.maxUnavailable.roundedDown(len(counts.clusters), 1) - counts.unavailable
	for _, i := range candidates {
		seen := &d.seen[i]
		switch {
		case d.places == 0:
			return began, blocked
		case !seen.inFlight && slots <= 0, slots < 0:
			continue
		case seen.ready && room <= 0:
			blocked++
			continue
		}
		if !seen.inFlight { // one that is in flight with another revision has a place already
			slots--
			counts.inFlight++
		}
		if seen.ready {
			room--
			counts.unavailable++
		}
		d.places--
		d.number++
		began++
		d.out.Starts = append(d.out.Starts, v1alpha1.RolloutStart{Cluster: d.in.Clusters[i].Name, Revision: revision, Start: d.number})
	}
	return began, blocked
}

// candidates are the clusters of a wave that a condition selects and that can be started, ready ones first, then by orderBy,
// then by name. In a return, those that are not ready come first: the revision may be why. Those that cannot be reached come last. Of
// these, only the ones with a start that has not ended are candidates: it goes on as soon as they can be reached again, at once and
// with whichever revision their BundleDeployment has then.
func (d *decider) candidates(wave int, selects func(int) bool) []int {
	var found []int
	for _, i := range d.waves[wave].clusters {
		if (d.seen[i].state == Pending || d.seen[i].isOutdated) && selects(i) {
			found = append(found, i)
		}
	}
	slices.SortFunc(found, func(a, b int) int {
		if d.seen[a].isOutdated != d.seen[b].isOutdated {
			if d.seen[b].isOutdated {
				return -1
			}
			return 1
		}
		if d.seen[a].ready != d.seen[b].ready {
			if d.seen[a].ready != d.in.Return {
				return -1
			}
			return 1
		}
		one, other := &d.in.Clusters[a], &d.in.Clusters[b]
		return cmp.Or(cmp.Compare(one.Order, other.Order), cmp.Compare(one.Name, other.Name))
	})
	return found
}

func anyCluster(int) bool { return true }

// wake asks for a decision at a time.
func (d *decider) wake(at time.Time) {
	if !at.IsZero() && (d.recheck.IsZero() || at.Before(d.recheck)) {
		d.recheck = at
	}
}

// because sets why the decision is as it is, and until when, where a time ends it.
func (d *decider) because(why string) {
	d.out.Why = why
	if why != v1alpha1.ReasonSoaking && why != v1alpha1.ReasonOutsideWindow {
		d.out.Until = time.Time{}
	}
}

// overBudget tells whether more clusters of a wave failed than its budget allows. Clusters that cannot be reached count where
// the strategy says so, once their wave has begun.
func (d *decider) overBudget(wave int) bool {
	counts := &d.waves[wave]
	failed, of := counts.failed, len(counts.clusters)-counts.unreachable
	if d.in.Strategy.unreachable == v1alpha1.UnreachableFail && d.out.Waves[wave].StartTime != nil {
		failed, of = failed+counts.unreachable, len(counts.clusters)
	}
	return failed > d.in.Strategy.Waves[wave].maxFailures.roundedDown(of, 0)
}

// report fills in the counts and the states of the waves, and when to decide again.
func (d *decider) report() {
	for i := range d.out.Waves {
		status, counts := &d.out.Waves[i], &d.waves[i]
		status.Total = int32(len(counts.clusters))     //nolint:gosec // at most some thousands
		status.Updated = int32(counts.updated)         //nolint:gosec // as above
		status.Updating = int32(counts.inFlight)       //nolint:gosec // as above
		status.Failed = int32(counts.failed)           //nolint:gosec // as above
		status.Unreachable = int32(counts.unreachable) //nolint:gosec // as above
		switch {
		case status.CompletionTime != nil:
			status.State = v1alpha1.WaveComplete
		case i != d.out.Open:
			status.State = v1alpha1.WavePending
		case status.SuccessTime != nil:
			status.State = v1alpha1.WaveSucceeded
		default:
			status.State = v1alpha1.WaveOpen
		}
		if !d.in.Return {
			status.Plan = d.nextPlan(i)
		}
		if i == d.out.Open && !d.in.Return {
			status.WaitsFor = d.out.Why
			status.EndTime = timeOrNil(d.out.Until)
		}
	}
	if d.recheck.After(d.in.Now) {
		d.out.Recheck = max(d.recheck.Sub(d.in.Now), time.Second)
	}
}
