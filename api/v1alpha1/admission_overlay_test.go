// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strconv"
	"strings"
	"testing"
)

// TestOverlayAdmission writes how bundles are adapted.
func TestOverlayAdmission(t *testing.T) {
	var patches, variables strings.Builder
	for i := range 101 {
		patches.WriteString("\n- {patch: '[]'}")
		for j := range 10 {
			variables.WriteString("\n    v" + strconv.Itoa(i*10+j) + ": x")
		}
	}
	const sha = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
	checkAdmission(t, "BundleDeployment", map[string]admitted{
		"all of them": {reason: "as in Flux", spec: aDeployment + `
processors:
- patch:
    {patch: '[{"op": "remove", "path": "/spec/replicas"}]', target: {group: apps, version: v1, kind: Deployment, name: a.*, namespace: b, labelSelector: "a in (b)", annotationSelector: c}}
- patch:
    {patch: 'kind: Service'}
- names: {prefix: eu-, suffix: -b}
- images: [{name: nginx, newName: "mirror:5000/nginx", newTag: "1.2"}, {name: quay.io/a/b, digest: "` + sha + `"}]
- variables: {values: {region: eu}, valuesFrom: [{kind: ConfigMap, name: a}, {kind: Secret, name: b, optional: true}]}
- metadata: {labels: {team: a}, annotations: {"example.org/note": b}}
- imageRewrites: [{from: quay.io/org, to: mirror.example.org/org}, {from: "localhost:5000", to: "mirror:5000"}]`},
		"empty patch":        {reason: "it says nothing", spec: aDeployment + "\npatches: [{patch: ''}]", want: `spec.processors[].patch[0].patch: Invalid value: "": spec.processors[].patch[0].patch in body should be at least 1 chars long`},
		"M22: large patch":   {reason: "it is parsed each time", spec: aDeployment + "\npatches: [{patch: " + strings.Repeat("a", 65537) + "}]", want: "spec.processors[].patch[0].patch: Too long: may not be more than 65536 bytes"},
		"M22: many patches":  {reason: "each is tried on each object", spec: aDeployment + "\npatches:" + patches.String(), want: "spec.processors[].patch: Too many: 101: must have at most 100 items"},
		"M22: variables":     {reason: "a Secret holds more", spec: aDeployment + "\npostBuild:\n  substitute:" + variables.String(), want: "spec.processors[].variables.values: Too many: 1010: must have at most 1000 items"},
		"labels of ours":     {reason: "they record the owner of the object", spec: aDeployment + "\ncommonMetadata: {labels: {satchel.dev/deployment: x}}", want: `spec.processors[].metadata.labels: Invalid value: labels of satchel.dev/ are set by the controller`},
		"prefix":             {reason: "no name begins so", spec: aDeployment + "\nnamePrefix: -a", want: `spec.processors[].names.prefix: Invalid value: "-a": must be the beginning of a name: lower-case letters, digits, '-' and '.', a letter or digit first`},
		"suffix":             {reason: "no name ends so", spec: aDeployment + "\nnameSuffix: a-", want: `spec.processors[].names.suffix: Invalid value: "a-": must be the end of a name: lower-case letters, digits, '-' and '.', a letter or digit last`},
		"image as it is":     {reason: "it would do nothing", spec: aDeployment + "\nimages: [{name: nginx}]", want: `spec.images[0]: Invalid value: one of newName, newTag and digest says what becomes of the image`},
		"image twice":        {reason: "which counts?", spec: aDeployment + "\nimages: [{name: nginx, newTag: a}, {name: nginx, newTag: b}]", want: `spec.images[1]: Duplicate value: {"name":"nginx"}`},
		"name with a digest": {reason: "two ways to say it", spec: aDeployment + "\nimages: [{name: nginx, newName: 'a@sha256:b'}]", want: `spec.images[0].newName: Invalid value: "a@sha256:b": must be the name of an image, without tag and digest`},
		"short digest":       {reason: "it would be refused by every registry", spec: aDeployment + "\nimages: [{name: nginx, digest: 'sha256:ab'}]", want: `spec.images[0].digest: Invalid value: "sha256:ab": must be a digest such as sha256:…, in lower case`},
		"values of others":   {reason: "names are bare", spec: aDeployment + "\npostBuild: {substituteFrom: [{kind: Secret, name: other/x}]}", want: `spec.processors[].variables.valuesFrom[0].name: Invalid value: "other/x": must be the bare name of an object in this namespace: lower-case letters, digits, '-' and '.'`},
		"values of a Pod":    {reason: "it has none", spec: aDeployment + "\npostBuild: {substituteFrom: [{kind: Pod, name: x}]}", want: `spec.processors[].variables.valuesFrom[0].kind: Unsupported value: "Pod": supported values: "ConfigMap", "Secret"`},
		"rewrite of a tag":   {reason: "tags stay", spec: aDeployment + "\nimageRewrites: [{from: 'a/b@x', to: a}]", want: `spec.processors[].imageRewrites[0].from: Invalid value: "a/b@x": must be a registry, or one with the beginning of a repository, such as quay.io/org; without tag, digest and a slash at the end`},
		"rewrite to a slash": {reason: "the rest begins with one", spec: aDeployment + "\nimageRewrites: [{from: a, to: b/}]", want: `spec.processors[].imageRewrites[0].to: Invalid value: "b/": must be a registry, or one with the beginning of a repository, such as mirror.example.org/quay; without tag, digest and a slash at the end`},
		"rewritten twice":    {reason: "which counts?", spec: aDeployment + "\nimageRewrites: [{from: a, to: b}, {from: a, to: c}]", want: `spec.processors[].imageRewrites[1]: Duplicate value: {"from":"a"}`},
	})
}
