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
	const interval = "must be a duration such as 90s, 10m or 1h30m, between 1s and 8760h"
	fields := map[string]struct {
		kind, path string
		spec       func(value string) string
		rule       string
		tooLong    string
	}{
		"source interval":    {"BundleSource", "spec.interval", source("interval"), interval, "8761h"},
		"source timeout":     {"BundleSource", "spec.timeout", source("timeout"), "must be a duration such as 60s or 5m, between 1s and 1h", "61m"},
		"interval":           {"BundleDeployment", "spec.interval", deployment("interval"), interval, "8761h"},
		"retryInterval":      {"BundleDeployment", "spec.retryInterval", deployment("retryInterval"), "must be a duration such as 30s or 1m, between 1s and 8760h", "8761h"},
		"deployment timeout": {"BundleDeployment", "spec.timeout", deployment("timeout"), "must be a duration such as 60s or 5m, between 1s and 8760h", "8761h"},
	}
	for name, field := range fields {
		t.Run(name, func(t *testing.T) {
			checkAdmission(t, field.kind, durations(field.spec, field.path, field.rule, field.tooLong))
		})
	}
}

// durations are the cases for one field.
func durations(spec func(value string) string, path, rule, tooLong string) map[string]admitted {
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
