// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/report"
)

func TestConditionsFollowKstatus(t *testing.T) {
	cases := map[string]struct {
		reason                      string
		say                         func(conditions.Setter)
		ready, reconciling, stalled metav1.ConditionStatus
	}{
		"ready":       {"nothing else is left", func(o conditions.Setter) { report.Ready(o, "R", "m") }, metav1.ConditionTrue, "", ""},
		"progressing": {"the outcome is open", func(o conditions.Setter) { report.Progressing(o, "R", "m") }, metav1.ConditionUnknown, metav1.ConditionTrue, ""},
		"retrying":    {"failed, but goes on", func(o conditions.Setter) { report.Retrying(o, "R", "m") }, metav1.ConditionFalse, metav1.ConditionTrue, ""},
		"stalled":     {"failed, and waits for somebody", func(o conditions.Setter) { report.Stalled(o, "R", "m") }, metav1.ConditionFalse, "", metav1.ConditionTrue},
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
	got := report.Shorten(long, 200)
	if len(got) > 200 || !strings.Contains(got, "more bytes") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if got := report.Shorten("short", 200); got != "short" {
		t.Errorf("a short text became %q", got)
	}
}
