// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestAmounts is R9: the numbers of all sizes.
func TestAmounts(t *testing.T) {
	number, percent := func(n int) *intstr.IntOrString { return new(intstr.FromInt32(int32(n))) }, func(s string) *intstr.IntOrString { return new(intstr.FromString(s)) } //nolint:gosec // small
	for name, tc := range map[string]struct {
		from                              *intstr.IntOrString
		of                                int
		concurrency, unavailable, failure int
	}{
		"1 of 0":         {number(1), 0, 0, 0, 0},
		"1 of 1":         {number(1), 1, 1, 1, 1},
		"above the size": {number(7), 3, 3, 3, 3},
		"33% of 1":       {percent("33%"), 1, 1, 1, 0},
		"33% of 2":       {percent("33%"), 2, 1, 1, 0},
		"33% of 3":       {percent("33%"), 3, 1, 1, 0},
		"34% of 3":       {percent("34%"), 3, 2, 1, 1},
		"100% of 3":      {percent("100%"), 3, 3, 3, 3},
		"1% of 5000":     {percent("1%"), 5000, 50, 50, 50},
		"20% of 0":       {percent("20%"), 0, 0, 0, 0},
	} {
		a, err := readAmount("f", tc.from, amount{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if c, u, f := a.roundedUp(tc.of), a.roundedDown(tc.of, 1), a.roundedDown(tc.of, 0); c != tc.concurrency || u != tc.unavailable || f != tc.failure {
			t.Errorf("%s: got %d, %d and %d", name, c, u, f)
		}
	}
	if defaultMaxConcurrency.roundedUp(9) != 1 || defaultMaxUnavailable.roundedDown(9, 1) != 9 || defaultMaxFailures.roundedDown(9, 0) != 0 ||
		defaultRemovalLimit.roundedDown(39, 1) != 3 || defaultRemovalLimit.roundedDown(4, 1) != 1 {
		t.Error("the defaults are 1, 100%, 0 and 10%")
	}
}

func TestAmountsAreRefused(t *testing.T) {
	for text, from := range map[string]*intstr.IntOrString{
		"f is 0: it has to be at least 1":                       new(intstr.FromInt32(0)),
		"f is 0%: it has to be at least 1":                      new(intstr.FromString("0%")),
		"f is -1: it has to be at least 1":                      new(intstr.FromInt32(-1)),
		`f is "7": it has to be a number, or a percentage`:      new(intstr.FromString("7")),
		`f is "101%": it has to be a number, or a percentage`:   new(intstr.FromString("101%")),
		`f is "many%": it has to be a number, or a percentage`:  new(intstr.FromString("many%")),
		`f is "1e1000": it has to be a number, or a percentage`: new(intstr.FromString("1e1000")),
	} {
		if _, err := readAmount("f", from, amount{}, 1); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
}
