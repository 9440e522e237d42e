// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// TestSteer is about which revision a rollout moves to.
func TestSteer(t *testing.T) {
	revision := func(name string) *v1alpha1.RolloutRevision {
		if name == "" {
			return nil
		}
		return &v1alpha1.RolloutRevision{Name: name, Digest: "sha256:" + name}
	}
	for name, tc := range map[string]struct {
		reason                  string
		update, current, wanted string
		rejected                string
		retry                   bool
		wantUpdate, wantReject  string
		outcome                 v1alpha1.RolloutOutcome
		run                     int64
	}{
		"nothing yet":            {reason: "the source is not ready", wantUpdate: "", run: 1},
		"first":                  {reason: "a first run", wanted: "r1", wantUpdate: "r1", run: 2},
		"the same":               {reason: "nothing to do", update: "r1", wanted: "r1", wantUpdate: "r1", run: 1},
		"complete":               {reason: "the next one", update: "r1", current: "r1", wanted: "r2", wantUpdate: "r2", run: 2},
		"newer in a run":         {reason: "the newest wins", update: "r2", current: "r1", wanted: "r3", wantUpdate: "r3", run: 2, outcome: v1alpha1.RolloutSuperseded},
		"newer after completion": {reason: "it is finished", update: "r2", current: "r2", wanted: "r3", wantUpdate: "r3", run: 2},
		"newer after rejection":  {reason: "the source moved", update: "r2", current: "r1", rejected: "r2", wanted: "r3", wantUpdate: "r3", run: 2},
		"abort":                  {reason: "back to the current one", update: "r2", current: "r1", wanted: "r1", wantUpdate: "r2", wantReject: "r2", run: 1, outcome: v1alpha1.RolloutAborted},
		"abort, again":           {reason: "it is on its way", update: "r2", current: "r1", rejected: "r2", wanted: "r1", retry: true, wantUpdate: "r2", wantReject: "r2", run: 1},
		"rejected":               {reason: "it is not tried again", update: "r2", current: "r1", rejected: "r2", wanted: "r2", wantUpdate: "r2", wantReject: "r2", run: 1},
		"retried":                {reason: "a user asked for it", update: "r2", current: "r1", rejected: "r2", wanted: "r2", retry: true, wantUpdate: "r2", run: 2},
		"retry of what runs":     {reason: "a request is no new run", update: "r2", current: "r1", wanted: "r2", retry: true, wantUpdate: "r2", run: 1},
		"older one":              {reason: "an ordinary run", update: "r3", current: "r3", wanted: "r1", wantUpdate: "r1", run: 2},
	} {
		t.Run(name, func(t *testing.T) {
			status := &v1alpha1.BundleRolloutStatus{UpdateRevision: revision(tc.update), CurrentRevision: revision(tc.current), RejectedRevision: tc.rejected, Run: 1, Waves: []v1alpha1.RolloutWaveStatus{{Name: "w"}}}
			changed := Steer(Course{Status: status, Wanted: revision(tc.wanted), Retry: tc.retry, HistoryLimit: 5, Now: metav1.NewTime(testStart)})
			update := ""
			if status.UpdateRevision != nil {
				update = status.UpdateRevision.Name
			}
			if update != tc.wantUpdate || status.RejectedRevision != tc.wantReject || status.Run != tc.run {
				t.Errorf("%s: goes to %q, rejected %q, run %d", tc.reason, update, status.RejectedRevision, status.Run)
			}
			if begins := status.Run > 1; begins != (status.Waves == nil) || changed != (begins || tc.outcome != "") {
				t.Errorf("%s: changed %t, waves %v", tc.reason, changed, status.Waves)
			}
			if tc.outcome != "" != (len(status.History) == 1) || tc.outcome != "" && status.History[0].Outcome != tc.outcome {
				t.Errorf("%s: the history is %+v", tc.reason, status.History)
			}
			if Returns(status) != (tc.wantReject != "") {
				t.Errorf("%s: returns %t", tc.reason, Returns(status))
			}
		})
	}
}

// TestSettle records what a decision found, and keeps a short history.
func TestSettle(t *testing.T) {
	r1, r2 := &v1alpha1.RolloutRevision{Name: "r1", Digest: "sha256:r1"}, &v1alpha1.RolloutRevision{Name: "r2", Digest: "sha256:r2"}
	course := Course{Now: metav1.NewTime(testStart), HistoryLimit: 2, Wanted: r2}
	course.Status = &v1alpha1.BundleRolloutStatus{
		UpdateRevision: r2.DeepCopy(), CurrentRevision: r1, Clusters: &v1alpha1.RolloutClusterCounts{Updated: 3, Failed: 1},
		Waves:   []v1alpha1.RolloutWaveStatus{{Name: "prod", Approval: "ann"}},
		History: []v1alpha1.RolloutRecord{{Name: "r1"}, {Name: "r2"}, {Name: "r0"}},
	}
	Settle(course, &Decision{Complete: true})
	status := course.Status
	if status.CurrentRevision.Name != "r2" || status.CurrentRevision.CompletionTime == nil || len(status.History) != 2 || status.History[1].Name != "r1" {
		t.Errorf("complete: %+v, history %+v", status.CurrentRevision, status.History)
	}
	if record := status.History[0]; record.Outcome != v1alpha1.RolloutComplete || record.Updated != 3 || record.Failed != 1 || len(record.Approvals) != 1 || record.Approvals[0].Name != "ann" {
		t.Errorf("the record is %+v", record)
	}
	Settle(course, &Decision{Complete: true})
	if len(status.History) != 2 {
		t.Error("a revision is completed once")
	}
	status.UpdateRevision = &v1alpha1.RolloutRevision{Name: "r3", Digest: "sha256:r3"}
	Settle(course, &Decision{Reject: true})
	if !Returns(status) || status.History[0].Outcome != v1alpha1.RolloutRolledBack {
		t.Errorf("rejected: %q, %+v", status.RejectedRevision, status.History)
	}
	course.Wanted = status.UpdateRevision
	Settle(course, &Decision{Returned: true})
	if !Returns(status) {
		t.Error("a revision that was rejected stays rejected while it is wanted")
	}
	course.Wanted = r2
	Settle(course, &Decision{Returned: true})
	if status.RejectedRevision != "" || status.UpdateRevision.Name != "r2" || status.Waves[0].State != v1alpha1.WaveComplete {
		t.Errorf("after an abort: %+v", status)
	}
}
