// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strconv"
	"strings"
	"testing"
)

// processed is a deployment with one processor.
func processed(processor string) string { return aDeployment + "\nprocessors: [{" + processor + "}]" }

// TestProcessorsAdmission writes how bundles are changed.
func TestProcessorsAdmission(t *testing.T) {
	var variables strings.Builder
	for i := range 1001 {
		variables.WriteString("v" + strconv.Itoa(i) + ": x, ")
	}
	const sha = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
	checkAdmission(t, "BundleDeployment", map[string]admitted{
		"all of them": {reason: "in any order, and more than once", spec: aDeployment + `
processors:
- patch:
    patch: '[{"op": "remove", "path": "/spec/replicas"}]'
    target: {group: apps, version: v1, kind: Deployment, name: a.*, namespace: b, labelSelector: "a in (b)", annotationSelector: c}
- names: {prefix: eu-, suffix: -b}
- patch: {patch: 'kind: Service'}
- images: [{name: nginx, newName: "mirror:5000/nginx", newTag: "1.2"}, {name: quay.io/a/b, digest: "` + sha + `"}]
- variables: {values: {region: eu}, valuesFrom: [{kind: ConfigMap, name: a}, {kind: Secret, name: b, optional: true}]}
- metadata: {labels: {team: a}, annotations: {"example.org/note": b}}
- imageRewrites: [{from: quay.io/org, to: mirror.example.org/org}, {from: "localhost:5000", to: "mirror:5000"}]
- names: {prefix: b-}`},
		"none":              {reason: "a list may be empty", spec: aDeployment + "\nprocessors: []"},
		"variables of none": {reason: "those with defaults are replaced", spec: processed("variables: {}")},
		"empty patch":       {reason: "it says nothing", spec: processed("patch: {patch: ''}"), want: `spec.processors[0].patch.patch: Invalid value: "": spec.processors[0].patch.patch in body should be at least 1 chars long`},
		"target only":       {reason: "what changes?", spec: processed("patch: {target: {kind: A}}"), want: "spec.processors[0].patch.patch: Required value"},
		"M22: large patch":  {reason: "it is parsed each time", spec: processed("patch: {patch: " + strings.Repeat("a", 65537) + "}"), want: "spec.processors[0].patch.patch: Too long: may not be more than 65536 bytes"},
		"M22: many": {
			reason: "each is tried on each object", spec: aDeployment + "\nprocessors:" + strings.Repeat("\n- patch: {patch: '[]'}", 101),
			want: "spec.processors: Too many: 101: must have at most 100 items",
		},
		"M22: variables":     {reason: "a Secret holds more", spec: processed("variables: {values: {" + variables.String() + "}}"), want: "spec.processors[0].variables.values: Too many: 1001: must have at most 1000 items"},
		"labels of ours":     {reason: "they record the owner of the object", spec: processed("metadata: {labels: {satchel.dev/deployment: x}}"), want: `spec.processors[0].metadata.labels: Invalid value: labels of satchel.dev/ are set by the controller`},
		"no metadata":        {reason: "it would do nothing", spec: processed("metadata: {}"), want: "spec.processors[0].metadata: Invalid value: at least one of the fields in [labels annotations] must be set"},
		"no names":           {reason: "it would do nothing", spec: processed("names: {}"), want: "spec.processors[0].names: Invalid value: at least one of the fields in [prefix suffix] must be set"},
		"prefix":             {reason: "no name begins so", spec: processed("names: {prefix: -a}"), want: `spec.processors[0].names.prefix: Invalid value: "-a": spec.processors[0].names.prefix in body should match '^[a-z0-9][-a-z0-9.]*$'`},
		"empty prefix":       {reason: "it would do nothing", spec: processed("names: {prefix: ''}"), want: `spec.processors[0].names.prefix: Invalid value: "": spec.processors[0].names.prefix in body should be at least 1 chars long`},
		"suffix":             {reason: "no name ends so", spec: processed("names: {suffix: a-}"), want: `spec.processors[0].names.suffix: Invalid value: "a-": spec.processors[0].names.suffix in body should match '^[-a-z0-9.]*[a-z0-9]$'`},
		"long suffix":        {reason: "names end somewhere", spec: processed("names: {suffix: " + strings.Repeat("a", 64) + "}"), want: "spec.processors[0].names.suffix: Too long: may not be more than 63 bytes"},
		"no images":          {reason: "it would do nothing", spec: processed("images: []"), want: "spec.processors[0].images: Invalid value: 0: spec.processors[0].images in body should have at least 1 items"},
		"image as it is":     {reason: "it would do nothing", spec: processed("images: [{name: nginx}]"), want: `spec.processors[0].images[0]: Invalid value: one of newName, newTag and digest says what becomes of the image`},
		"image twice":        {reason: "which counts?", spec: processed("images: [{name: nginx, newTag: a}, {name: nginx, newTag: b}]"), want: `spec.processors[0].images[1]: Duplicate value: {"name":"nginx"}`},
		"name with a digest": {reason: "two ways to say it", spec: processed("images: [{name: nginx, newName: 'a@sha256:b'}]"), want: `spec.processors[0].images[0].newName: Invalid value: "a@sha256:b": spec.processors[0].images[0].newName in body should match '^[a-zA-Z0-9][a-zA-Z0-9._:/-]*$'`},
		"short digest":       {reason: "it would be refused by every registry", spec: processed("images: [{name: nginx, digest: 'sha256:ab'}]"), want: `spec.processors[0].images[0].digest: Invalid value: "sha256:ab": spec.processors[0].images[0].digest in body should match '^sha(256:[a-f0-9]{64}|384:[a-f0-9]{96}|512:[a-f0-9]{128})$'`},
		"values of others":   {reason: "names are bare", spec: processed("variables: {valuesFrom: [{kind: Secret, name: other/x}]}"), want: `spec.processors[0].variables.valuesFrom[0].name: Invalid value: "other/x": must be the bare name of an object in this namespace: lower-case letters, digits, '-' and '.'`},
		"values of a Pod":    {reason: "it has none", spec: processed("variables: {valuesFrom: [{kind: Pod, name: x}]}"), want: `spec.processors[0].variables.valuesFrom[0].kind: Unsupported value: "Pod": supported values: "ConfigMap", "Secret"`},
		"no rewrites":        {reason: "it would do nothing", spec: processed("imageRewrites: []"), want: "spec.processors[0].imageRewrites: Invalid value: 0: spec.processors[0].imageRewrites in body should have at least 1 items"},
		"rewrite of a tag":   {reason: "tags stay", spec: processed("imageRewrites: [{from: 'a/b@x', to: a}]"), want: `spec.processors[0].imageRewrites[0].from: Invalid value: "a/b@x": spec.processors[0].imageRewrites[0].from in body should match '^[a-zA-Z0-9]([a-zA-Z0-9._:/-]*[a-zA-Z0-9_-])?$'`},
		"rewrite to a slash": {reason: "the rest begins with one", spec: processed("imageRewrites: [{from: a, to: b/}]"), want: `spec.processors[0].imageRewrites[0].to: Invalid value: "b/": spec.processors[0].imageRewrites[0].to in body should match '^[a-zA-Z0-9]([a-zA-Z0-9._:/-]*[a-zA-Z0-9_-])?$'`},
		"rewritten twice":    {reason: "which counts?", spec: processed("imageRewrites: [{from: a, to: b}, {from: a, to: c}]"), want: `spec.processors[0].imageRewrites[1]: Duplicate value: {"from":"a"}`},
	})
}

// TestProcessorsAreOfOneKind writes processors of none, of two and of an unknown kind.
func TestProcessorsAreOfOneKind(t *testing.T) {
	const exactlyOne = "spec.processors[0]: Invalid value: exactly one of the fields in [patch names images imageRewrites variables metadata] must be set"
	cases := map[string]admitted{
		"none": {reason: "it would do nothing", spec: processed(""), want: exactlyOne},
		"all":  {reason: "in which order?", spec: processed("patch: {patch: a}, names: {prefix: a}, images: [{name: a, newTag: b}], imageRewrites: [{from: a, to: b}], variables: {}, metadata: {labels: {a: b}}"), want: exactlyOne},
		"second": {
			reason: "each is looked at", spec: aDeployment + "\nprocessors: [{variables: {}}, {}]",
			want: strings.Replace(exactlyOne, "[0]", "[1]", 1),
		},
		"unknown": {
			reason: "a typing error is told, as kubectl tells it", spec: processed("patches: [{patch: a}]"),
			want: `BundleDeployment in version "v1alpha1" cannot be handled as a BundleDeployment: strict decoding error: unknown field "spec.processors[0].patches"`,
		},
	}
	kinds := []string{"patch: {patch: a}", "names: {prefix: a}", "images: [{name: a, newTag: b}]", "imageRewrites: [{from: a, to: b}]", "variables: {values: {a: b}}", "metadata: {labels: {a: b}}"}
	for i, kind := range kinds {
		next := kinds[(i+1)%len(kinds)]
		cases[kind] = admitted{reason: "one of a kind", spec: processed(kind)}
		cases[kind+" and another"] = admitted{reason: "in which order?", spec: processed(kind + ", " + next), want: exactlyOne}
	}
	checkAdmission(t, "BundleDeployment", cases)
}
