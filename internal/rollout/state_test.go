// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// updatedFact is a cluster on which r2 is ready for long enough at testStart.
func updatedFact() Fact {
	return Fact{Name: "c", Wanted: "v1:2", WantedCurrent: "v1:1", Child: &Child{
		Revision: "r2", SpecHash: "v1:2", Start: 7, Started: testStart.Add(-time.Hour), Generation: 3, ObservedGeneration: 3,
		Ready: true, ReadySince: testStart.Add(-30 * time.Second),
		Outcome: v1alpha1.OutcomeHealthy, Tried: 3, Content: contentOf("r2"), Finished: testStart.Add(-40 * time.Second),
	}}
}

// TestStates is R10: each line of the table, and what just misses it.
func TestStates(t *testing.T) {
	notReady := func(f *Fact, reason string) {
		f.Child.Ready, f.Child.Reason, f.Child.Outcome, f.Child.ReadySince = false, reason, "", testStart.Add(-time.Minute)
		f.Child.Started = testStart.Add(-time.Minute)
	}
	otherTarget := func(f *Fact) {
		notReady(f, v1alpha1.ReasonTargetChanged)
		f.Child.Stalled, f.Child.OtherTarget = true, true
	}
	for name, tc := range map[string]struct {
		reason   string
		change   func(*Fact)
		recorded int64
		want     State
		inFlight bool
		ready    bool
	}{
		"updated":            {reason: "all of line 8", want: Updated, ready: true},
		"recorded":           {reason: "not seen yet", recorded: 8, want: Starting, inFlight: true},
		"recorded, seen":     {reason: "the number is there", recorded: 7, want: Updated, ready: true},
		"recorded, no child": {reason: "it is about to be created", change: func(f *Fact) { f.Child = nil }, recorded: 1, want: Starting, inFlight: true},
		"no child":           {reason: "line 2", change: func(f *Fact) { f.Child = nil }, want: Pending},
		"no child, no spec":  {reason: "none is begun with half a name", change: func(f *Fact) { f.Child, f.Invalid = nil, "no value" }, want: Failed},
		"no spec":            {reason: "it ran before", change: func(f *Fact) { f.Invalid = "no value" }, want: Failed, ready: true},
		"suspended":          {reason: "a person did", change: func(f *Fact) { f.Child.Suspended = true }, want: Held, ready: true},
		"another cluster":    {reason: "nothing is touched there", change: otherTarget, want: Held},
		"another cluster, other kubeconfig": {reason: "it was corrected", want: Pending, change: func(f *Fact) {
			otherTarget(f)
			f.OtherKubeConfig, f.Wanted = true, "v1:3"
		}},
		"another cluster, other labels": {reason: "the kubeconfig is the same", want: Held, change: func(f *Fact) {
			otherTarget(f)
			f.Wanted = "v1:3"
		}},
		"another cluster, kubeconfig of a user": {reason: "a start would not change it", want: Held, change: func(f *Fact) {
			otherTarget(f)
			f.OtherKubeConfig = true
		}},
		"another cluster before the start": {reason: "the corrected kubeconfig was not tried yet", want: Updating, inFlight: true, change: func(f *Fact) {
			otherTarget(f)
			f.Child.Generation = 4
		}},
		"another cluster, being deleted": {reason: "it is not written any more", want: Held, change: func(f *Fact) {
			otherTarget(f)
			f.OtherKubeConfig, f.Wanted, f.Child.Deleting, f.Child.Generation = true, "v1:3", true, 4
		}},
		"another cluster, corrected and suspended": {reason: "a person did", want: Held, change: func(f *Fact) {
			otherTarget(f)
			f.OtherKubeConfig, f.Wanted, f.Child.Suspended = true, "v1:3", true
		}},
		"two names":                  {reason: "which one is right?", change: func(f *Fact) { f.Duplicate = true }, want: Held, ready: true},
		"waits for its approval":     {reason: "a person has to approve", change: func(f *Fact) { notReady(f, ""); f.Child.ApprovalPending = true }, want: Held},
		"approval after it was well": {reason: "another plan of the same revision", change: func(f *Fact) { f.Child.ApprovalPending = true }, want: Updated, ready: true},
		"approval of the revision before": {reason: "it is not needed any more", want: Pending, change: func(f *Fact) {
			notReady(f, "")
			f.Child.Revision, f.Child.ApprovalPending = "r1", true
		}},
		"waits for a dependency": {reason: "it is not overdue", change: func(f *Fact) {
			notReady(f, v1alpha1.ReasonDependencyNotReady)
			f.Child.Started = testStart.Add(-time.Hour)
		}, want: Held},
		"unreachable":         {reason: "for 5 minutes", change: func(f *Fact) { notReady(f, "x"); f.UnreachableSince = testStart.Add(-5 * time.Minute) }, want: Unreachable},
		"not for long enough": {reason: "it keeps its place", change: func(f *Fact) { notReady(f, "x"); f.UnreachableSince = testStart.Add(-5*time.Minute + 1) }, want: Updating, inFlight: true},
		"another revision":    {reason: "line 5", change: func(f *Fact) { f.Child.Revision = "r1" }, want: Pending, ready: true},
		"labels changed":      {reason: "another spec of the same revision", change: func(f *Fact) { f.Wanted = "v1:3" }, want: Pending, ready: true},
		"another one, on its way": {reason: "its place is kept", want: Pending, inFlight: true, change: func(f *Fact) {
			notReady(f, "x")
			f.Child.Revision = "r1"
		}},
		"another one, not seen": {reason: "the controller is about to begin", change: func(f *Fact) { f.Child.Revision, f.Child.Generation = "r1", 4 }, want: Pending, inFlight: true},
		"another one, overdue": {reason: "nothing moves any more", want: Pending, change: func(f *Fact) {
			notReady(f, "x")
			f.Child.Revision, f.Child.Started = "r1", testStart.Add(-15*time.Minute)
		}},
		"another one, stalled":           {reason: "nothing moves any more", change: func(f *Fact) { notReady(f, "x"); f.Child.Revision, f.Child.Stalled = "r1", true }, want: Pending},
		"another one, sick after it was": {reason: "it has landed", change: func(f *Fact) { f.Child.Revision, f.Child.Ready = "r1", false }, want: Pending},
		"generation not observed":        {reason: "its status is about the spec before", change: func(f *Fact) { f.Child.Generation = 4 }, want: Updating, inFlight: true},
		"stalled":                        {reason: "line 7", change: func(f *Fact) { notReady(f, "x"); f.Child.Stalled = true }, want: Failed},
		"rolled back itself":             {reason: "this content", change: func(f *Fact) { f.Child.Rejected = "v1@" + contentOf("r2") }, want: Failed, ready: true},
		"rolled back another":            {reason: "other content", change: func(f *Fact) { f.Child.Rejected = "v1@" + contentOf("r1") }, want: Updated, ready: true},
		"ready for too short a time":     {reason: "minReady from the condition", change: func(f *Fact) { f.Child.ReadySince = testStart.Add(-30*time.Second + 1) }, want: Updating, inFlight: true},
		"started too short ago":          {reason: "minReady from the start, though the condition did not change", change: func(f *Fact) { f.Child.Started = testStart.Add(-29 * time.Second) }, want: Updating, inFlight: true},
		"finished too short ago":         {reason: "minReady from the record", change: func(f *Fact) { f.Child.Finished = testStart.Add(-29 * time.Second) }, want: Updating, inFlight: true},
		"Ready of the old revision": {reason: "Argo #29410, OCM #1201: the condition never changed", want: Updating, inFlight: true, change: func(f *Fact) {
			f.Child.ReadySince, f.Child.Content, f.Child.Finished = testStart.Add(-time.Hour), contentOf("r1"), testStart.Add(-time.Hour)
		}},
		"Ready of the old template": {reason: "the same content, another generation", change: func(f *Fact) { f.Child.Tried = 2 }, want: Updating, inFlight: true},
		"in progress":               {reason: "no outcome yet", change: func(f *Fact) { f.Child.Outcome = "" }, want: Updating, inFlight: true},
		"overdue": {reason: "15 minutes from the start", want: Failed, change: func(f *Fact) {
			notReady(f, "x")
			f.Child.Started = testStart.Add(-15 * time.Minute)
		}},
		"not yet overdue": {reason: "a moment before", want: Updating, inFlight: true, change: func(f *Fact) {
			notReady(f, "x")
			f.Child.Started = testStart.Add(-15*time.Minute + 1)
		}},
		"sick for a while":    {reason: "counted from when it stopped to be ready", change: func(f *Fact) { f.Child.Ready, f.Child.ReadySince = false, testStart.Add(-14*time.Minute) }, want: Updating, inFlight: true},
		"sick for too long":   {reason: "counted from when it stopped to be ready", change: func(f *Fact) { f.Child.Ready, f.Child.ReadySince = false, testStart.Add(-15*time.Minute) }, want: Failed},
		"Ready is not Failed": {reason: "an old start that is ready again", change: func(f *Fact) { f.Child.Started = testStart.Add(-time.Hour) }, want: Updated, ready: true},
	} {
		t.Run(name, func(t *testing.T) {
			fact := updatedFact()
			if tc.change != nil {
				tc.change(&fact)
			}
			in := &Input{Now: testStart, Began: testStart.Add(-time.Hour), Update: testRevision("r2"), Strategy: defaultStrategy(t)}
			d := &decider{in: in, out: &Decision{}}
			got := d.observe(&fact, in.updateAim(), tc.recorded)
			if got.state != tc.want || got.inFlight != tc.inFlight || got.ready != tc.ready {
				t.Errorf("%s: got %s, in flight %t, ready %t", tc.reason, got.state, got.inFlight, got.ready)
			}
		})
	}
}

// TestNothingIsOverdueForWantOfWatching is a controller that was away for a day.
func TestNothingIsOverdueForWantOfWatching(t *testing.T) {
	fact := updatedFact()
	fact.Child.Ready, fact.Child.Outcome, fact.Child.Started = false, "", testStart.Add(-24*time.Hour)
	in := &Input{Now: testStart, Began: testStart.Add(-15*time.Minute + 1), Update: testRevision("r2"), Strategy: defaultStrategy(t)}
	d := &decider{in: in, out: &Decision{}}
	if got := d.observe(&fact, in.updateAim(), 0); got.state != Updating || !got.next.Equal(testStart.Add(1)) {
		t.Errorf("got %s until %s", got.state, got.next)
	}
}

func defaultStrategy(t testing.TB) *Strategy {
	t.Helper()
	strategy, err := ReadStrategy(&v1alpha1.RolloutStrategy{})
	if err != nil {
		t.Fatal(err)
	}
	return strategy
}

// TestChildOf reads a BundleDeployment.
func TestChildOf(t *testing.T) {
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Generation: 3, Annotations: map[string]string{
		v1alpha1.RolloutRevisionAnnotation: "r2", v1alpha1.RolloutSpecAnnotation: "v1:2", v1alpha1.RolloutStartAnnotation: "7",
		v1alpha1.RolloutStartedAnnotation: "2026-05-04T11:00:00Z",
	}}}
	finished := metav1.NewTime(testStart)
	d.Status = v1alpha1.BundleDeploymentStatus{
		ObservedGeneration: 2, Rejected: v1alpha1.RejectedRevision{Revision: "v1@x"}, LastHandledReconcileAt: "now",
		Conditions: []metav1.Condition{
			{Type: "Ready", Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClusterDenied, Message: "m", LastTransitionTime: finished},
			{Type: "Stalled", Status: metav1.ConditionTrue},
			{Type: v1alpha1.ApprovalPendingCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonApprovalRequired},
		},
		History: []v1alpha1.RevisionRecord{{Outcome: v1alpha1.OutcomeFailed, Generation: 2, Revision: "v1@sha256:x", Digest: "sha256:file", CompletionTime: &finished}, {Outcome: v1alpha1.OutcomeHealthy}},
	}
	d.Spec.Suspend = true
	want := Child{
		Revision: "r2", SpecHash: "v1:2", Start: 7, Started: testStart.Add(-time.Hour), Generation: 3, ObservedGeneration: 2,
		Suspended: true, Stalled: true, ApprovalPending: true, ReadySince: testStart, Reason: v1alpha1.ReasonClusterDenied, Message: "m",
		Outcome: v1alpha1.OutcomeFailed, Tried: 2, Content: "sha256:x", Finished: testStart, Rejected: "v1@x", Handled: "now",
	}
	got := ChildOf(d)
	if *got != want || !got.Unreachable() {
		t.Errorf("got %+v", got)
	}
	d.Status.Conditions[2].Reason = v1alpha1.ReasonPruneHeld
	if ChildOf(d).ApprovalPending {
		t.Error("a deletion beyond the prune limit is no plan that waits")
	}
	if (*Child)(nil).Unreachable() || ChildOf(&v1alpha1.BundleDeployment{}).Start != 0 {
		t.Error("nothing is known of it")
	}
}
