// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"testing"
	"time"
)

// TestBegan begins again when the time that is shown and the time that has passed differ by much.
func TestBegan(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		set    time.Duration
		again  bool
	}{
		"not set":   {reason: "both are equal"},
		"corrected": {reason: "by some seconds", set: -5 * time.Second},
		"back":      {reason: "what was recorded is in the future", set: -time.Hour, again: true},
		"forward":   {reason: "or the machine slept", set: time.Minute, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			now, passed := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), 3*time.Hour
			c := Clock{Passed: func() time.Duration { return passed }}
			first := c.Began(now)
			now, passed = now.Add(time.Hour), passed+time.Hour
			if got := c.Began(now); !got.Equal(first) {
				t.Fatalf("began at %s an hour later, want %s", got, first)
			}
			now, passed = now.Add(time.Minute+tc.set), passed+time.Minute
			want := first
			if tc.again {
				want = now
			}
			if got := c.Began(now); !got.Equal(want) {
				t.Errorf("%s: began at %s, want %s", tc.reason, got, want)
			}
			if got := c.Began(now.Add(time.Second)); !got.Equal(want) {
				t.Errorf("%s: began at %s at the next look, want %s", tc.reason, got, want)
			}
		})
	}
}

// TestMonotonic takes the time that has passed from the results of time.Now.
func TestMonotonic(t *testing.T) {
	var c Clock
	first := c.Began(time.Now())
	if got := c.Began(time.Now().Add(time.Hour)); !got.Equal(first) { // both clocks are an hour later
		t.Errorf("began at %s, want %s", got, first)
	}
}
