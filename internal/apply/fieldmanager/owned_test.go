// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ignore"
)

const us = "satchel/shop/web"

func applyEntry(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)}
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	o := &unstructured.Unstructured{}
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = o.UnmarshalJSON(encoded) // numbers as an API client has them
	}
	if err != nil {
		t.Fatal(err)
	}
	return o.Object
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}, finalizers: [a/b, c/d]}
spec:
  replicas: 2
  empty: {}
  template:
    spec:
      containers:
      - {name: web, image: w, ports: [{containerPort: 80}, {containerPort: 443}]}
      - {name: log, image: l}
`

// TestExplain: fields that are not ours any more, and their managers.
func TestExplain(t *testing.T) {
	whole := `{"f:metadata":{"f:labels":{"f:app":{}},"f:finalizers":{"v:\"a/b\"":{},"v:\"c/d\"":{}}},"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{
		"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}},"k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}},
		"k:{\"name\":\"log\"}":{".":{},"f:name":{},"f:image":{}}}}}}}`
	for name, tc := range map[string]struct {
		reason   string
		ours     string
		others   []metav1.ManagedFieldsEntry
		fields   []string
		managers []string
	}{
		"all ours": {reason: "nothing was taken", ours: whole},
		"taken": {reason: "another manager holds it", ours: strings.Replace(whole, `"f:replicas":{},`, "", 1),
			others: []metav1.ManagedFieldsEntry{applyEntry("scaler", `{"f:spec":{"f:replicas":{}}}`)}, fields: []string{".spec.replicas"}, managers: []string{"scaler"}},
		"removed": {reason: "no manager holds it", ours: strings.Replace(whole, `"f:replicas":{},`, "", 1),
			others: []metav1.ManagedFieldsEntry{applyEntry("other", `{"f:spec":{"f:paused":{}}}`)}, fields: []string{".spec.replicas"}},
		"an item by its keys": {reason: "a key that the manifest leaves out is a default", ours: strings.Replace(whole, `"k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}`, `"k:{\"containerPort\":444,\"protocol\":\"TCP\"}":{}`, 1),
			others: []metav1.ManagedFieldsEntry{applyEntry("edit", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:ports":{"k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{"f:containerPort":{}}}}}}}}}`)},
			fields: []string{`.spec.template.spec.containers[name="web"].ports[1].containerPort`}, managers: []string{"edit"}},
		"an item by its value": {reason: "sets have no keys", ours: strings.Replace(whole, `,"v:\"c/d\"":{}`, "", 1),
			others: []metav1.ManagedFieldsEntry{applyEntry("a", `{"f:metadata":{"f:finalizers":{"v:\"c/d\"":{}}}}`)}, fields: []string{".metadata.finalizers[1]"}, managers: []string{"a"}},
		"owned as a whole": {reason: "what is below needs no entry", ours: `{"f:metadata":{"f:labels":{},"f:finalizers":{}},"f:spec":{}}`},
		"taken as a whole": {reason: "what is below is named", ours: `{"f:metadata":{"f:finalizers":{}},"f:spec":{}}`,
			others: []metav1.ManagedFieldsEntry{applyEntry("a", `{"f:metadata":{"f:labels":{"f:app":{}}}}`)}, fields: []string{".metadata.labels.app"}, managers: []string{"a"}},
		"unreadable": {reason: "the API server writes no such entry", ours: `[`, others: []metav1.ManagedFieldsEntry{applyEntry("a", `{}`)}, managers: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got Difference
			got.explain(append(tc.others, applyEntry(us, tc.ours)), us, object(t, deployment))
			if diff := cmp.Diff(Difference{Fields: tc.fields, Managers: tc.managers}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWithoutGiven: ignored fields leave our entry, and nothing else does.
func TestWithoutGiven(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, pointer, ours, want string
	}{
		"a field":         {"the only one of its level takes the level along", "/spec/replicas", `{"f:spec":{"f:replicas":{}},"f:x":{}}`, `{"f:x":{}}`},
		"of several":      {"the others stay", "/spec/replicas", `{"f:spec":{".":{},"f:replicas":{}}}`, `{"f:spec":{}}`},
		"all below":       {"with what it contains", "/spec/template", `{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:a":{}}}}}`, `{"f:spec":{"f:replicas":{}}}`},
		"an item":         {"found by its key", "/spec/template/spec/containers/1/image", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"log\"}":{".":{},"f:image":{}},"k:{\"name\":\"web\"}":{"f:image":{}}}}}}}`, `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"log\"}":{},"k:{\"name\":\"web\"}":{"f:image":{}}}}}}}`},
		"a value":         {"found in a set", "/metadata/finalizers/0", `{"f:metadata":{"f:finalizers":{"v:\"a/b\"":{},"v:\"c/d\"":{}}}}`, `{"f:metadata":{"f:finalizers":{"v:\"c/d\"":{}}}}`},
		"not ours":        {"nothing is released", "/spec/replicas", `{"f:spec":{"f:paused":{}}}`, ""},
		"inside an atom":  {"a list or mapping owned as a whole has no parts", "/spec/replicas", `{"f:spec":{}}`, ""},
		"beyond the list": {"no such item", "/metadata/finalizers/2", `{"f:metadata":{"f:finalizers":{"v:\"a/b\"":{}}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			action := plan.Action{}
			action.Desired = &unstructured.Unstructured{Object: object(t, deployment)}
			action.Given = []ignore.Pointer{strings.Split(tc.pointer[1:], "/")}
			got, held, err := WithoutGiven([]metav1.ManagedFieldsEntry{applyEntry("other", tc.ours), applyEntry(us, tc.ours)}, us, action)
			if err != nil {
				t.Fatal(err)
			}
			want := tc.want
			if want == "" {
				want = tc.ours
			}
			if held != (tc.want != "") || got[1].FieldsV1.GetRawString() != want || got[0].FieldsV1.GetRawString() != tc.ours {
				t.Errorf("%s: released %t, left %s, want %s", tc.reason, held, got[1].FieldsV1.GetRawString(), want)
			}
		})
	}
}

// BenchmarkExplain: three managers, about 200 fields.
func BenchmarkExplain(b *testing.B) {
	var containers, ours []string
	for i := range 25 {
		containers = append(containers, fmt.Sprintf(`{name: c%d, image: i, command: [a], workingDir: /, terminationMessagePath: /x, env: [{name: A, value: b}]}`, i))
		ours = append(ours, fmt.Sprintf(`"k:{\"name\":\"c%d\"}":{".":{},"f:name":{},"f:image":{},"f:command":{},"f:workingDir":{},"f:terminationMessagePath":{},"f:env":{".":{},"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}}}`, i))
	}
	desired := object(b, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 2, template: {spec: {containers: ["+strings.Join(containers, ", ")+"]}}}")
	whole := `{"f:spec":{"f:template":{"f:spec":{"f:containers":{` + strings.Join(ours, ",") + `}}}}}`
	entries := []metav1.ManagedFieldsEntry{
		applyEntry(us, whole), applyEntry("scaler", `{"f:spec":{"f:replicas":{}}}`),
		applyEntry("defaults", strings.ReplaceAll(whole, `"f:image":{},`, "")),
	}
	for b.Loop() {
		var d Difference
		d.explain(entries, us, desired)
		if len(d.Fields) != 1 {
			b.Fatal(d)
		}
	}
}
