// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// starts are the clusters in the order of the numbers of their last starts.
func (r *rig) starts() []string {
	type started struct {
		on     string
		number int
	}
	var all []started
	for on, child := range r.children() {
		number, _ := strconv.Atoi(child.Annotations[v1alpha1.RolloutStartAnnotation])
		all = append(all, started{on, number})
	}
	slices.SortFunc(all, func(a, b started) int { return a.number - b.number })
	var names []string
	for _, one := range all {
		names = append(names, one.on)
	}
	return names
}

// TestR20Waves wants six clusters in waves of one, two and three updated in that order, each wave after the soak time of the one
// before.
func TestR20Waves(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	two := intstr.FromInt32(2)
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		for i := range spec.Strategy.Waves {
			spec.Strategy.Waves[i].Soak = v1alpha1.Duration{Duration: 2 * time.Second}
		}
		spec.Strategy.Waves[2].MaxConcurrency = &two
	})
	for _, version := range []string{"v1", "v2"} {
		r.publish(version)
		object := r.until(version+" complete", complete(version))
		if diff := cmp.Diff([]string{"c1", "c2", "c3", "c4", "c5", "c6"}, r.starts()); diff != "" {
			t.Errorf("order of starts (-want +got):\n%s", diff)
		}
		waves := object.Status.Waves
		for i, wave := range waves[:3] {
			if wave.CompletionTime.Sub(wave.SuccessTime.Time) < 2*time.Second {
				t.Errorf("wave %s soaked from %s to %s", wave.Name, wave.SuccessTime, wave.CompletionTime)
			}
			if i > 0 && wave.StartTime.Before(waves[i-1].CompletionTime) {
				t.Errorf("wave %s began at %s, before wave %s was complete at %s", wave.Name, wave.StartTime, waves[i-1].Name, waves[i-1].CompletionTime)
			}
		}
		children := r.children()
		if first, second := started(children["c4"]), started(children["c5"]); !first.Equal(second) {
			t.Errorf("c4 and c5 were not started together: %s, %s", first, second)
		}
		if fourth, last := started(children["c4"]), started(children["c6"]); !last.After(fourth) {
			t.Errorf("c6 was started beside c4 and c5, and two at once are allowed")
		}
		if condition(object, "Ready") != "True Succeeded" {
			t.Errorf("Ready is %s", condition(object, "Ready"))
		}
	}
	for _, reason := range []string{"RevisionStarted", "WaveStarted", "WaveSucceeded", "WaveCompleted", "RevisionCompleted"} {
		if !slices.Contains(r.events.reasons, reason) {
			t.Errorf("no event %s among %v", reason, r.events.reasons)
		}
	}
}

func started(child *v1alpha1.BundleDeployment) time.Time {
	at, _ := time.Parse(time.RFC3339, child.Annotations[v1alpha1.RolloutStartedAnnotation])
	return at
}

// TestR22NewRevision publishes another version in mid run.
func TestR22NewRevision(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create()
	r.until("v1 complete", complete("v1"))
	r.publish("v2")
	r.until("the second wave began", func(o *v1alpha1.BundleRollout) bool {
		return len(o.Status.Waves) > 1 && o.Status.Waves[1].StartTime != nil && o.Status.Run == 2
	})
	r.publish("v3")
	r.check = func() {
		versions := r.versions("v1", "v2", "v3")
		for _, on := range []string{"c4", "c5", "c6"} {
			if versions[on] == "v2" {
				t.Errorf("the last wave ran v2: %v", versions)
			}
		}
		if versions["c2"] == "v3" && versions["c1"] != "v3" || versions["c4"] == "v3" && (versions["c2"] != "v3" || versions["c3"] != "v3") {
			t.Errorf("a cluster runs what an earlier wave does not: %v", versions)
		}
	}
	object := r.until("v3 complete", complete("v3"))
	if len(object.Status.History) != 3 {
		t.Fatalf("history: %+v", object.Status.History)
	}
	if got := object.Status.History[1].Outcome; got != v1alpha1.RolloutSuperseded {
		t.Errorf("v2 ended as %s, want %s", got, v1alpha1.RolloutSuperseded)
	}
}

// TestR23BadRevision publishes a version that fails in the first wave.
func TestR23BadRevision(t *testing.T) {
	for _, action := range []v1alpha1.RolloutFailureAction{v1alpha1.RolloutPause, v1alpha1.RolloutRollback, v1alpha1.RolloutContinue} {
		t.Run(string(action), func(t *testing.T) {
			r := newRig(t)
			r.publish("v1")
			r.create(func(spec *v1alpha1.BundleRolloutSpec) { spec.Strategy.OnFailure = action })
			r.until("v1 complete", complete("v1"))
			r.bad["c1"+digestOf("v2")] = true
			r.publish("v2")
			switch action {
			case v1alpha1.RolloutPause:
				r.suspends()
			case v1alpha1.RolloutRollback:
				r.rollsBack()
			case v1alpha1.RolloutContinue: // a wave still needs a success
				r.until("no success", because(v1alpha1.ReasonNoClusterSucceeded))
			}
		})
	}
}

func (r *rig) suspends() {
	object := r.until("halted", because(v1alpha1.ReasonMaxFailuresExceeded))
	if got := condition(object, "Stalled") + ", " + condition(object, "Ready"); got != "True MaxFailuresExceeded, False MaxFailuresExceeded" {
		r.t.Errorf("Stalled, Ready: %s", got)
	}
	if worst := object.Status.Worst; len(worst) != 1 || worst[0].Cluster != "c1" {
		r.t.Errorf("worst: %v", worst)
	}
	r.steps(5)
	if got := r.versions("v1", "v2"); got["c2"] != "v1" {
		r.t.Errorf("a cluster was started while halted: %v", got)
	}
	delete(r.bad, "c1"+digestOf("v2")) // it recovers by itself
	r.until("v2 complete", complete("v2"))
}

func (r *rig) rollsBack() {
	object := r.until("rolled back", because(v1alpha1.ReasonRevisionRejected))
	if got := r.versions("v1", "v2"); got["c1"] != "v1" || got["c2"] != "v1" {
		r.t.Errorf("versions after the rollback: %v", got)
	}
	if object.Status.RejectedRevision == "" || object.Status.History[0].Outcome != v1alpha1.RolloutRolledBack {
		r.t.Errorf("rejected %q, history %v", object.Status.RejectedRevision, object.Status.History)
	}
	run := object.Status.Run
	r.steps(5)
	if got := r.get().Status.Run; got != run {
		r.t.Errorf("the rejected revision was tried again: run %d after %d", got, run)
	}
	r.publish("v3")
	r.until("v3 complete", complete("v3"))
}

// TestAbort goes back to the current revision in mid run, and stays there until the field is emptied.
func TestAbort(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create()
	current := r.until("v1 complete", complete("v1")).Status.CurrentRevision.Name
	r.publish("v2")
	r.until("the second wave began", func(o *v1alpha1.BundleRollout) bool { return o.Status.Run == 2 && o.Status.Waves[1].StartTime != nil })
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Revision = current })
	object := r.until("v1 again", complete("v1"))
	if got := r.versions("v1", "v2"); got["c1"] != "v1" || got["c2"] != "v1" {
		t.Errorf("versions after the abort: %v", got)
	}
	if !slices.ContainsFunc(object.Status.History, func(one v1alpha1.RolloutRecord) bool { return one.Outcome == v1alpha1.RolloutAborted }) {
		t.Errorf("history: %v", object.Status.History)
	}
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Revision = "" })
	r.until("v2 complete", complete("v2"))
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Revision = "0123456789" })
	object = r.until("not found", func(o *v1alpha1.BundleRollout) bool { return condition(o, "Stalled") == "True RevisionNotFound" })
	if got := r.versions("v2"); len(got) != 6 {
		t.Errorf("versions: %v; %v", got, object.Status.Conditions)
	}
}

// TestSuspended starts nothing while the rollout is suspended.
func TestSuspended(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create()
	r.until("v1 complete", complete("v1"))
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Suspend = true })
	r.publish("v2")
	object := r.until("suspended", because(v1alpha1.ReasonSuspended))
	r.steps(3)
	if got := fmt.Sprint(r.versions("v1", "v2")); got != "map[c1:v1 c2:v1 c3:v1 c4:v1 c5:v1 c6:v1]" {
		t.Errorf("versions while suspended: %s", got)
	}
	if condition(object, "Ready") != "True Suspended" {
		t.Errorf("Ready is %s: what runs is ready", condition(object, "Ready"))
	}
	r.edit(func(o *v1alpha1.BundleRollout) { o.Spec.Suspend = false })
	r.until("v2 complete", complete("v2"))
}
