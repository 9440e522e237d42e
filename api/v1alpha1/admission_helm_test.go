// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestHelmAdmission writes the options of charts, rightly and wrongly.
func TestHelmAdmission(t *testing.T) {
	helm := func(options string) string { return aDeployment + "\nhelm: " + options }
	from := func(reference string) string { return helm("{valuesFrom: [" + reference + "]}") }
	const badPath = "must be a path of names and indexes such as image.tag or hosts[0].name"
	checkAdmission(t, "BundleDeployment", map[string]admitted{
		"all fields": {reason: "nothing contradicts", spec: aDeployment + `
format: helm
helm:
  releaseName: shop.eu-1
  values: {image: {tag: v1}, list: [1, {a: null}], "odd key": true}
  valuesFrom:
  - {kind: ConfigMap, name: base}
  - {kind: Secret, name: shop, valuesKey: pass_word, targetPath: "db.password", optional: true}
  - {kind: Secret, name: shop, valuesKey: host, targetPath: 'annotations.example\.org/host'}
  - {kind: Secret, name: shop, valuesKey: host, targetPath: "hosts[0].name"}`},
		"no format":         {reason: "it may be detected", spec: helm("{}")},
		"another format":    {reason: "they would be ignored", spec: helm("{}") + "\nformat: kustomize", want: "spec: Invalid value: helm needs format helm"},
		"release name":      {reason: "Helm has no such name", spec: helm("{releaseName: Shop}"), want: `spec.helm.releaseName: Invalid value: "Shop": must be the name of a release: lower-case letters, digits, '-' and '.'`},
		"long release name": {reason: "Helm allows 53", spec: helm("{releaseName: " + strings.Repeat("a", 54) + "}"), want: "spec.helm.releaseName: Too long: may not be more than 53 bytes"},
		"values in a list":  {reason: "values have names", spec: helm("{values: [a]}"), want: `spec.helm.values: Invalid value: "array": spec.helm.values in body must be of type object: "array"`},
		"values in a text":  {reason: "a text is no values", spec: helm("{values: \"a: b\"}"), want: `spec.helm.values: Invalid value: "string": spec.helm.values in body must be of type object: "string"`},
		"kind":              {reason: "only what is written", spec: from("{kind: Pod, name: a}"), want: `spec.helm.valuesFrom[0].kind: Unsupported value: "Pod": supported values: "Secret", "ConfigMap"`},
		"nameless":          {reason: "which Secret?", spec: from("{kind: Secret}"), want: "spec.helm.valuesFrom[0].name: Required value"},
		"namespace":         {reason: "no reference names a namespace", spec: from("{kind: Secret, name: a, namespace: b}"), want: `BundleDeployment in version "v1alpha1" cannot be handled as a BundleDeployment: strict decoding error: unknown field "spec.helm.valuesFrom[0].namespace"`},
		"name in a path":    {reason: "a bare name", spec: from("{kind: Secret, name: ../b/a}"), want: `spec.helm.valuesFrom[0].name: Invalid value: "../b/a": must be the bare name of an object in this namespace: lower-case letters, digits, '-' and '.'`},
		"key":               {reason: "Secrets have no such key", spec: from("{kind: Secret, name: a, valuesKey: a/b}"), want: `spec.helm.valuesFrom[0].valuesKey: Invalid value: "a/b": spec.helm.valuesFrom[0].valuesKey in body should match '^[-._a-zA-Z0-9]+$'`},
		"assignment":        {reason: "the path must not bring a value of its own", spec: from(`{kind: Secret, name: a, targetPath: "a=b,c"}`), want: `spec.helm.valuesFrom[0].targetPath: Invalid value: "a=b,c": ` + badPath},
		"open index":        {reason: "no index", spec: from(`{kind: Secret, name: a, targetPath: "a[x]"}`), want: `spec.helm.valuesFrom[0].targetPath: Invalid value: "a[x]": ` + badPath},
		"great index":       {reason: "a list of a million elements", spec: from(`{kind: Secret, name: a, targetPath: "a[1000000]"}`), want: `spec.helm.valuesFrom[0].targetPath: Invalid value: "a[1000000]": ` + badPath},
		"too many":          {reason: "each is a request", spec: from(strings.TrimSuffix(strings.Repeat("{kind: Secret, name: a}, ", 51), ", ")), want: "spec.helm.valuesFrom: Too many: 51: must have at most 50 items"},
	})
}

// TestHelmValuesSurvive reads values as they were written: nothing is pruned from them, and nothing is added.
func TestHelmValuesSurvive(t *testing.T) {
	a := newAdmission(t)
	created, err := a.create(object(t, "BundleDeployment", "x", aDeployment+"\nhelm: {values: {a: {b: [1, null, {c: d}]}}, valuesFrom: [{kind: Secret, name: a}]}"))
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := unstructured.NestedSlice(created.Object, "spec", "helm", "values", "a", "b")
	if err != nil || len(list) != 3 || list[0] != int64(1) || list[1] != nil {
		t.Errorf("the values are %v (%v)", list, err)
	}
	from, _, err := unstructured.NestedSlice(created.Object, "spec", "helm", "valuesFrom")
	if err != nil || len(from) != 1 || len(from[0].(map[string]any)) != 2 {
		t.Errorf("valuesFrom is %v (%v)", from, err)
	}
}
