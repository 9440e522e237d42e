// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestDriftDetectionAdmission writes how drift is handled, and which fields are given away.
func TestDriftDetectionAdmission(t *testing.T) {
	mode := func(mode string) string { return aDeployment + "\ndrift: {correction: " + mode + "}" }
	ignore := func(paths string) string {
		return aDeployment + "\ndrift: {ignore: [{paths: [" + paths + "]}]}"
	}
	const notGiven = "spec.drift.ignore[0].paths: Invalid value: what an object is, and its labels as a whole, cannot be given to others"
	cases := map[string]admitted{
		"warn": {reason: "a mode, without rules", spec: mode("Warn")},
		"all": {reason: "rules with a target and without", spec: aDeployment + `
drift:
  correction: None
  ignore:
  - paths: [/spec/replicas, /metadata/annotations/example.org~1note, /metadata/labels/tier, /data/a~0b]
  - paths: [/webhooks/0/clientConfig/caBundle]
    target: {group: .*, version: v1, kind: .*WebhookConfiguration, namespace: a, name: b, labelSelector: "a in (b,c)", annotationSelector: "!d"}`},
		"another mode":   {reason: "Flux spells them in lower case", spec: mode("enabled"), want: `spec.drift.correction: Unsupported value: "enabled": supported values: "Enabled", "Warn", "None"`},
		"a rule of none": {reason: "it would give nothing away", spec: ignore(""), want: "spec.drift.ignore[0].paths: Invalid value: 0: spec.drift.ignore[0].paths in body should have at least 1 items"},
		"no paths":       {reason: "which fields?", spec: aDeployment + "\ndrift: {ignore: [{target: {kind: Secret}}]}", want: "spec.drift.ignore[0].paths: Required value"},
		"M22: long path": {reason: "a pointer is no text", spec: ignore("/" + strings.Repeat("a", 512)), want: "spec.drift.ignore[0].paths[0]: Too long: may not be more than 512 bytes"},
		"M22: many paths": {
			reason: "each is looked up in each object", spec: ignore(strings.TrimSuffix(strings.Repeat("/data/a,", 51), ",")),
			want: "spec.drift.ignore[0].paths: Too many: 51: must have at most 50 items",
		},
		"M22: many rules": {
			reason: "each is compared with each object", spec: aDeployment + "\ndrift:\n  ignore:" + strings.Repeat("\n  - paths: [/data/a]", 51),
			want: "spec.drift.ignore: Too many: 51: must have at most 50 items",
		},
		"M22: long name": {
			reason: "expressions are compiled", spec: aDeployment + "\ndrift: {ignore: [{paths: [/data/a], target: {name: " + strings.Repeat("a", 254) + "}}]}",
			want: "spec.drift.ignore[0].target.name: Too long: may not be more than 253 bytes",
		},
	}
	for _, pointer := range []string{"spec/replicas", ".spec.replicas", "/", "/data/", "//data", "/data/a~2b", "/data/a~", ""} {
		cases["no pointer: "+pointer] = admitted{
			reason: "it would never match anything", spec: ignore(fmt.Sprintf("%q", pointer)),
			want: fmt.Sprintf("spec.drift.ignore[0].paths[0]: Invalid value: %q: spec.drift.ignore[0].paths[0] in body should match '^(/([^~/]|~[01])+)+$'", pointer),
		}
	}
	for _, pointer := range []string{"/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace", "/metadata/labels"} {
		cases["not given: "+pointer] = admitted{reason: "the object could not be recognized any more", spec: ignore("/spec/replicas, " + pointer), want: notGiven}
	}
	checkAdmission(t, "BundleDeployment", cases)
}
