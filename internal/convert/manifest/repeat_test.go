// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// TestEqualKeys: a key that is there twice with equal values is read once, with a warning that names file, line and key and
// quotes no value.
func TestEqualKeys(t *testing.T) {
	const twice = "appears twice in one mapping, with equal values; the first is in line"
	for name, c := range map[string]struct {
		reason, file, content string
		want                  any // of the key v of the first object
		warnings              []string
	}{
		"scalars":       {"both lines are named", "a.yaml", "kind: X\nv:\n  a: " + canary + "\n  b: 1\n  a: " + canary, map[string]any{"a": canary, "b": int64(1)}, []string{`a.yaml: line 5: the key "a" ` + twice + " 3"}},
		"mappings":      {"whatever their order is", "a.yaml", "kind: X\nv: {a: 1, b: [c]}\nv:\n  b: [c]\n  a: 1\n", map[string]any{"a": int64(1), "b": []any{"c"}}, []string{`a.yaml: line 3: the key "v" ` + twice + " 2"}},
		"nothing":       {"empty is null", "a.yaml", "kind: X\nv: \nv: ~\n", nil, []string{`a.yaml: line 3: the key "v" ` + twice + " 2"}},
		"three times":   {"each is named", "a.yaml", "kind: X\nv: 1\nv: 1\nv: 1\n", int64(1), []string{`a.yaml: line 3: the key "v" ` + twice + " 2", `a.yaml: line 4: the key "v" ` + twice + " 2"}},
		"by meaning":    {"true and on are the same key", "a.yaml", "kind: X\nv:\n  on: 1\n  true: 1\n", map[string]any{"true": int64(1)}, []string{`a.yaml: line 4: the key "true" ` + twice + " 3"}},
		"second of two": {"lines are those of the file", "a.yaml", "kind: W\n---\nkind: X\nv: 1\nv: 1\n", nil, []string{`a.yaml: document 2: line 5: the key "v" ` + twice + " 4"}},
		"aliased":       {"an alias says it once", "a.yaml", "kind: X\nw: &a {b: 1, b: 1}\nv: [*a, *a]\n", []any{map[string]any{"b": int64(1)}, map[string]any{"b": int64(1)}}, []string{`a.yaml: line 2: the key "b" ` + twice + " 2"}},
		"merged":        {"a key that is merged as well is not there twice", "a.yaml", "kind: X\nv: {<<: {a: 1}, a: 1}\n", map[string]any{"a": int64(1)}, nil},
		"JSON":          {"as in YAML", "a.json", "{\"kind\": \"X\",\n\"v\": {\"a\": 1},\n\"v\":\n{\"a\": 1}}", map[string]any{"a": int64(1)}, []string{`a.json: line 3: the key "v" ` + twice + " 2"}},
		"JSON, inside":  {"of the inner object", "a.json", "{\"kind\": \"X\", \"a\": 1,\n\"v\": {\"a\": 1,\n\"a\": 1}}", map[string]any{"a": int64(1)}, []string{`a.json: line 3: the key "a" ` + twice + " 2"}},
		"JSON as YAML":  {"it is read twice, and said once", "a.yaml", "{\"kind\": \"X\", \"v\": 1, \"v\": 1}\n---\nkind: Y\n", int64(1), []string{`a.yaml: line 1: the key "v" ` + twice + " 1"}},
		"long keys":     {"they are cut", "a.yaml", "kind: X\nv: {" + strings.Repeat("k", 90) + ": 1, " + strings.Repeat("k", 90) + ": 1}", map[string]any{strings.Repeat("k", 90): int64(1)}, []string{`a.yaml: line 2: the key "` + strings.Repeat("k", 64) + `..." ` + twice + " 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			reader := manifest.NewReader(fstest.MapFS{c.file: {Data: []byte(c.content)}}, manifest.Limits{})
			read := reader.Read(c.file)
			if problems := reader.Problems(); len(problems) > 0 || len(read) == 0 {
				t.Fatalf("%s: %v", c.reason, problems)
			}
			if diff := cmp.Diff(c.want, read[0].Object.Object["v"]); diff != "" {
				t.Errorf("%s: value (-want +got):\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(c.warnings, reader.Warnings()); diff != "" {
				t.Errorf("%s: warnings (-want +got):\n%s", c.reason, diff)
			}
			strict := manifest.NewReader(fstest.MapFS{c.file: {Data: []byte(c.content)}}, manifest.Limits{}).Strict()
			if strict.Read(c.file); len(strict.Problems()) == 0 == (len(c.warnings) > 0) {
				t.Errorf("%s: a strict reader has the problems %v", c.reason, strict.Problems())
			}
		})
	}
}

// TestM8ManyEqualKeys: a bundle that was made to have many of them does not give endless lists, or take long.
func TestM8ManyEqualKeys(t *testing.T) {
	reader := manifest.NewReader(fstest.MapFS{"a.yaml": {Data: []byte("kind: X\nv:\n" + strings.Repeat("  a: 1\n", 250_000))}, "b.json": {Data: []byte(`{"kind":"X","v":{` + strings.Repeat(`"a":1,`, 200_000) + `"a":1}}`)}}, manifest.Limits{})
	reader.Read("a.yaml")
	reader.Read("b.json")
	if said := reader.Warnings(); len(said) != 101 || said[100] != fmt.Sprintf("%d more keys appear twice in one mapping", 449_999-100) || len(reader.Problems()) > 0 {
		t.Errorf("%d warnings, the last is %s; %v", len(said), said[len(said)-1], reader.Problems())
	}
}

// TestRepeatsIn: of files that another parser reads, all repeated keys are named.
func TestRepeatsIn(t *testing.T) {
	got := manifest.RepeatsIn("f.yaml", []byte("a: 1\nb:\n- {c: 1, c: 1}\na: 2\n"))
	want := []manifest.Repeat{{File: "f.yaml", Document: 1, Key: "c", Line: 3, First: 3}, {File: "f.yaml", Document: 1, Key: "a", Line: 4, First: 1, Differ: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	bomb := "a0: &a0 {b: 1, b: 1}\n"
	for i := 1; i < 30; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
	}
	for _, text := range []string{"", "a: [", "a: *b", "\x00", strings.Repeat("[", 1000), bomb} {
		_ = manifest.RepeatsIn("f.yaml", []byte(text)) // it ends
	}
}

// TestJSONSize: it is what encoding/json writes.
func TestJSONSize(t *testing.T) {
	for _, value := range []any{
		nil, true, false, "", "a\"b\\c\n\t\r\b\f\x01é<&>😀", int64(0), int64(-12345), 1.5, 1e21, 1e-7, -0.25, 12345678901234567890.0, map[string]any{}, []any{},
		map[string]any{"a": []any{int64(1), "x", nil}, "b": map[string]any{"c": map[string]any{}}}, []any{[]any{}, []any{int64(1)}, "x"},
	} {
		var b strings.Builder
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(value); err != nil {
			t.Fatal(err)
		}
		if got, want := manifest.JSONSize(value), int64(b.Len()-1); got != want {
			t.Errorf("%s has %d bytes, not %d", b.String(), want, got)
		}
	}
}

// indented is a CRD as generators write it: much of its text is indentation.
func indented(fields, levels int) string {
	var b strings.Builder
	b.WriteString("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: deep.example.org}\nspec:\n")
	margin := "  "
	for level := range levels {
		fmt.Fprintf(&b, "%sproperties:\n%s  level%d:\n", margin, margin, level)
		margin += "    "
	}
	b.WriteString(margin + "properties:\n")
	for i := range fields {
		fmt.Fprintf(&b, "%s  field%d:\n%s    description: >-\n%s      A field of the many that a Pod template brings\n%s      with it.\n%s    type: string\n", margin, i, margin, margin, margin, margin)
	}
	return b.String()
}

// TestLargeTextOfASmallObject: what counts is the object, not how its text is indented.
func TestLargeTextOfASmallObject(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		text   string
		rules  []string
	}{
		"deep":      {"4 MiB of text are less than 1.5 MiB of JSON", indented(10_500, 15), nil},
		"too large": {"etcd accepts no such request", indented(20_000, 1), []string{manifest.RuleLimit}},
		"too long":  {"a text has its limit, too", indented(12_000, 40), []string{manifest.RuleLimit}},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := read("a.yaml", c.text, manifest.Limits{})
			var rules []string
			for _, p := range problems {
				rules = append(rules, p.Rule)
			}
			size := int64(0)
			if len(got) > 0 {
				size = manifest.JSONSize(got[0].Object.Object)
			}
			t.Logf("%d bytes of text, %d of JSON: %v", len(c.text), size, problems)
			if !slices.Equal(rules, c.rules) {
				t.Errorf("%s: %v", c.reason, problems)
			}
		})
	}
}
