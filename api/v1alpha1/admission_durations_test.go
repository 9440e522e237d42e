// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestM22Durations writes all that is not a duration into every field that holds one.
func TestM22Durations(t *testing.T) {
	source := func(field string) func(string) string {
		return func(value string) string { return anImage + "\n" + field + ": " + value }
	}
	deployment := func(field string) func(string) string {
		return func(value string) string { return aDeployment + "\n" + field + ": " + value }
	}
	fields := map[string]struct {
		kind, path string
		spec       func(value string) string
		tooLong    string
	}{
		"source interval": {"BundleSource", "spec.interval", source("interval"), "8761h"},
		"source timeout":  {"BundleSource", "spec.timeout", source("timeout"), "61m"},
		"interval":        {"BundleDeployment", "spec.interval", deployment("interval"), "8761h"},
		"retryInterval":   {"BundleDeployment", "spec.retryInterval", deployment("retryInterval"), "8761h"},
		"health timeout":  {"BundleDeployment", "spec.health.timeout", deployment("health:\n  timeout"), "8761h"},
	}
	for name, field := range fields {
		t.Run(name, func(t *testing.T) {
			cases := durations(field.spec, field.path, field.tooLong)
			if name == "source timeout" {
				lowerMaximum(cases, field.path, field.tooLong)
			}
			checkAdmission(t, field.kind, cases)
		})
	}
}

// lowerMaximum changes the cases for a field that has a maximum of its own.
func lowerMaximum(cases map[string]admitted, path, tooLong string) {
	const rule = "must be at most 1h"
	c := cases[tooLong]
	c.want = path + `: Invalid value: "` + tooLong + `": ` + rule
	cases[tooLong] = c
	c = cases["9999999h"]
	c.want = "[" + path + `: Invalid value: "string": type conversion error from 'string' to 'google.protobuf.Duration' evaluating rule: ` + rule + ", " + c.want + "]"
	cases["9999999h"] = c
}

// durations are the cases for one field.
func durations(spec func(value string) string, path, tooLong string) map[string]admitted {
	const rule = "must be a duration such as 90s, 10m or 1h30m, between 1s and 8760h"
	cases := map[string]admitted{
		"shortest":  {reason: "one second is legal everywhere", spec: spec("1s")},
		"longest":   {reason: "one hour is legal everywhere", spec: spec("1h")},
		"fractions": {reason: "parts and fractions are Go's syntax", spec: spec("59m0.5s")},
		"number": {
			reason: "a number has no unit", spec: spec("10"),
			want: path + `: Invalid value: "integer": ` + path + ` in body must be of type string: "integer"`,
		},
		"huge": {
			reason: "megabytes of digits are not parsed", spec: spec(strings.Repeat("9", 100_000) + "h"),
			want: path + ": Too long: may not be more than 32 bytes",
		},
	}
	cases["9999999h"] = admitted{
		reason: "longer than Go can count", spec: spec("9999999h"),
		want: path + `: Invalid value: "string": type conversion error from 'string' to 'google.protobuf.Duration' evaluating rule: ` + rule,
	}
	for value, reason := range map[string]string{
		"1d":    "Go knows no days (Flux CVE-2022-39272)",
		"-1s":   "time does not run backwards",
		"0s":    "no pause at all is a busy loop",
		"999ms": "the shortest is one second",
		tooLong: "longer than the longest",
		`""`:    "an empty string is no duration",
		"soon":  "words are no duration",
		"1h 5m": "there are no blanks between parts",
	} {
		shown := fmt.Sprintf("%q", strings.Trim(value, `"`))
		cases[value] = admitted{reason: reason, spec: spec(value), want: path + ": Invalid value: " + shown + ": " + rule}
	}
	return cases
}
