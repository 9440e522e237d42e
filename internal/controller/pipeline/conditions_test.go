// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

func TestConditionsFollowKstatus(t *testing.T) {
	cases := map[string]struct {
		reason                      string
		say                         func(conditions.Setter)
		ready, reconciling, stalled metav1.ConditionStatus
	}{
		"ready":       {"nothing else is left", func(o conditions.Setter) { pipeline.SetReady(o, "R", "m") }, metav1.ConditionTrue, "", ""},
		"progressing": {"the outcome is open", func(o conditions.Setter) { pipeline.SetProgressing(o, "R", "m") }, metav1.ConditionUnknown, metav1.ConditionTrue, ""},
		"retrying":    {"failed, but goes on", func(o conditions.Setter) { pipeline.SetRetrying(o, "R", "m") }, metav1.ConditionFalse, metav1.ConditionTrue, ""},
		"stalled":     {"failed, and needs user action", func(o conditions.Setter) { pipeline.SetStalled(o, "R", "m") }, metav1.ConditionFalse, "", metav1.ConditionTrue},
	}
	for name, tc := range cases {
		for before, first := range cases {
			t.Run(before+" then "+name, func(t *testing.T) {
				object := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
				first.say(object)
				tc.say(object)
				for kind, want := range map[string]metav1.ConditionStatus{"Ready": tc.ready, "Reconciling": tc.reconciling, "Stalled": tc.stalled} {
					var got metav1.ConditionStatus
					if c := conditions.Get(object, kind); c != nil {
						got = c.Status
						if c.ObservedGeneration != 3 {
							t.Errorf("%s is about generation %d, want 3", kind, c.ObservedGeneration)
						}
					}
					if got != want {
						t.Errorf("%s: %s is %q, want %q", tc.reason, kind, got, want)
					}
				}
			})
		}
	}
}

func TestShorten(t *testing.T) {
	long := strings.Repeat("line of text\n", 100)
	got := pipeline.Shorten(long, 200)
	if len(got) > 200 || !strings.Contains(got, "more bytes") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if got := pipeline.Shorten("short", 200); got != "short" {
		t.Errorf("a short text became %q", got)
	}
}

// TestM30MessagesHideNothing: conditions and events are escaped where they are set and recorded, and fit the API server.
func TestM30MessagesHideNothing(t *testing.T) {
	const hostile, escaped = "name \u202egnp.exe\u200b \x1b[2J", `name \u202egnp.exe\u200b \u001b[2J`
	object := &v1alpha1.BundleSource{}
	pipeline.SetRetrying(object, "R", hostile)
	for _, c := range object.Status.Conditions {
		if c.Message != escaped {
			t.Errorf("%s says %q", c.Type, c.Message)
		}
	}
	recorded := events.NewFakeRecorder(2)
	recorder := pipeline.EventRecorder(recorded)
	recorder.Eventf(object, nil, "Warning", "R", "A", "%s: %d%%", hostile, 5)
	if got := <-recorded.Events; !strings.HasSuffix(got, escaped+": 5%") {
		t.Errorf("recorded %q", got)
	}
	recorder.Eventf(object, nil, "Warning", "R", "A", "%s", strings.Repeat("\u200b", 1000))
	if got := <-recorded.Events; len(got) > pipeline.LongestNote+len("Warning R ") {
		t.Errorf("an event has %d bytes", len(got))
	}
	if pipeline.EventRecorder(nil) != nil {
		t.Error("no recorder became one")
	}
}
