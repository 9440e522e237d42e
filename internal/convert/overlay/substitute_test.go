// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/convert/overlay"
)

func substituting(given map[string]string) overlay.Options {
	return list(overlay.Processor{Variables: &overlay.Variables{Given: given}})
}

// TestExpressions: what may stand between the braces, as in Flux.
func TestExpressions(t *testing.T) {
	values := map[string]string{"a": "Hello", "empty": "", "n": "8080", "path": "v1/x/y", "self": "${a}", "lines": "x\ny: z # \"'", "_X9": "u"}
	for text, want := range map[string]string{
		"plain":                     "plain",
		"${a}":                      "Hello",
		"<${a}|${_X9}>":             "<Hello|u>",
		"$${a} ${a} $a $(a) $$ $$$": "${a} Hello $a $(a) $$ $$$",
		"$${a:-${b}}":               "!${b:-${b}}", // see below
		"${none:=x}":                "x",
		"${none:-x y}":              "x y",
		"${none=}":                  "",
		"${empty:=x}":               "x",
		"${empty=x}":                "",
		"${empty-x}":                "",
		"${none:=${a}-${none:=z}}":  "Hello-z",
		"${none:=$${a}}":            "${a}",
		"${a:1}":                    "ello",
		"${a:1:2}":                  "el",
		"${a:9}":                    "",
		"${a:0:99}":                 "Hello",
		"${path/x/y}":               "v1/y/y",
		"${path//x}":                "v1//y",
		"${a//l/L}":                 "HeLLo",
		"${path#v1/}":               "x/y",
		"${path%/y}":                "v1/x",
		"${path%%/y}":               "v1/x",
		"${path##v1}":               "/x/y",
		"${a^^}":                    "HELLO",
		"${a,,}":                    "hello",
		"${a,}":                     "hello",
		"${_X9^}":                   "U",
		"${#a}":                     "5",
		"${self}":                   "${a}", // a value names no other variable
		"${lines}":                  "x\ny: z # \"'",
		"${b}":                      "the variable b has no value, and no default stands with it",
		"x ${none:=${b}}":           "the variable b has no value, and no default stands with it",
		"${a":                       "a ${ has no end",
		"${}":                       "a ${ begins no variable",
		"${9}":                      "a ${ begins no variable",
		"${a.b}":                    "a ${ begins no variable",
		"${ a }":                    "a ${ begins no variable",
		"${{ github.ref }}":         "a ${ begins no variable",
		"${a:?no}":                  "the variable a is cut at a position that is no number",
		"${a:-1:x}":                 "Hello", // a default, as the shell has it
		"${a:1:-1}":                 "the variable a is cut at a position that is no number",
		"${a[@]}":                   "a ${ begins no variable",
		"${a#*e}":                   "a ${ begins no variable",
		"${a^^x}":                   "a ${ begins no variable",
		"${a@Q}":                    "a ${ begins no variable",
		"${!a}":                     "a ${ begins no variable",
		"${x:=${x:=${x:=${x:=${x:=${x:=${x:=1}}}}}}}": "the defaults of variables nest too deep",
	} {
		if text == "$${a:-${b}}" { // the escape is of the first only: what is within is a variable of its own
			want = "the variable b has no value, and no default stands with it"
		}
		manifest := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": map[string]any{"t": text}}
		data, err := yaml.Marshal(manifest)
		if err != nil {
			t.Fatal(err)
		}
		objects, _, problems := outcome(t, string(data), substituting(values))
		if problems != "" {
			if !strings.HasPrefix(problems, "bundle.yaml (document 1): ConfigMap x: spec.processors[0].variables: data.t: "+want) {
				t.Errorf("%q: said %q, want %q", text, problems, want)
			}
			continue
		}
		var got struct{ Data map[string]string }
		if err := yaml.Unmarshal([]byte(strings.TrimPrefix(objects, "---\n")), &got); err != nil || got.Data["t"] != want {
			t.Errorf("%q became %q, want %q (%v)", text, got.Data["t"], want, err)
		}
	}
}

// TestSubstitutedTypes: a number stays a text where a text is wanted, and becomes one where a number is.
func TestSubstitutedTypes(t *testing.T) {
	const objects = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {num: "${n}"}, annotations: {"${k}": "${yes}"}}
spec:
  replicas: ${n}
  paused: ${yes}
  strategy: {rollingUpdate: {maxSurge: "${n}", maxUnavailable: "${n}%"}}
  template:
    spec:
      containers:
      - name: a
        command: ["${n}"]
        env: [{name: NUM, value: "${n}"}]
        resources: {limits: {cpu: "${n}"}}
        ports: [{containerPort: "${n}"}]
        livenessProbe: {httpGet: {port: "${n}"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {num: "${n}", on1: "${yes}", "${k}.txt": a}
---
apiVersion: example.org/v1
kind: Custom
metadata: {name: c, labels: {num: "${n}"}}
spec: {num: "${n}", on1: "${yes}", text: "${quoted}", part: "${n}x", both: "${n}${n}", f: "${half}", big: "${big}", z: "${zero}"}
`
	got, _, problems := outcome(t, objects, substituting(map[string]string{
		"n": "2", "yes": "true", "k": "key", "quoted": `"2"`, "half": "0.5", "big": "123456789012345678901234567890", "zero": "007",
	}))
	if problems != "" {
		t.Fatal(problems)
	}
	for _, want := range []string{
		"replicas: 2\n", "paused: true\n", "maxSurge: 2\n", "maxUnavailable: 2%\n", "- \"2\"\n", "value: \"2\"\n", "cpu: \"2\"\n", "containerPort: 2\n", "port: 2\n",
		"key: \"true\"\n", "num: \"2\"\n", "on1: \"true\"\n", "key.txt: a\n",
		"  num: 2\n", "  on1: true\n", "text: \"2\"\n", "part: 2x\n", "both: \"22\"\n", "f: 0.5\n", "big: \"123456789012345678901234567890\"\n", "z: \"007\"\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Count(got, "num: \"2\"\n") != 3 {
		t.Errorf("labels are texts in custom resources, too:\n%s", got)
	}
	for field, want := range map[string]string{
		"replicas: \"${n}\"": "spec.replicas: the field has to be a whole number",
		"paused: \"${n}\"":   "spec.paused: the field has to be true or false",
	} {
		_, _, problems := outcome(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {"+field+"}\n", substituting(map[string]string{"n": "hunter22"}))
		if !strings.Contains(problems, want) || strings.Contains(problems, "hunter22") {
			t.Errorf("%s: said %q", field, problems)
		}
	}
}

// TestNoInjection: what a value contains stays within the text that it becomes part of.
func TestNoInjection(t *testing.T) {
	for _, value := range []string{"a\nkind: Secret", `"}, "x": {`, "- a\n- b", "{a: b}", "[1]", "|\n x", "&a *a", "!!binary x", "\u2028x: y", "null", "~", "${x}", "$${x}"} {
		objects, _, problems := outcome(t, "apiVersion: example.org/v1\nkind: Custom\nmetadata: {name: c}\nspec: {a: \"${v}\", b: \"<${v}>\"}\n", substituting(map[string]string{"v": value}))
		var got struct{ Spec map[string]any }
		if err := yaml.Unmarshal([]byte(strings.TrimPrefix(objects, "---\n")), &got); err != nil || problems != "" {
			t.Fatal(err, problems)
		}
		if diff := cmp.Diff(map[string]any{"a": value, "b": "<" + value + ">"}, got.Spec); diff != "" {
			t.Errorf("%q: %s", value, diff)
		}
	}
}

// TestNotSubstituted: objects that opt out, and what only looks like variables.
func TestNotSubstituted(t *testing.T) {
	const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: a.b, annotations: {x: "${v}"}}
spec: {versions: [{name: v1, schema: {openAPIV3Schema: {description: "write ${HOME}"}}}]}
`
	for name, c := range map[string]struct{ reason, text, want string }{
		"annotation of Flux": {"so that bundles made for Flux work", "metadata: {name: x, annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}", "${HOME}"},
		"label of Flux":      {"Flux takes both", "metadata: {name: x, labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}}", "${HOME}"},
		"annotation of ours": {"where Flux is not meant", "metadata: {name: x, annotations: {satchel.dev/substitute: disabled}}", "${HOME}"},
	} {
		objects, _, problems := outcome(t, "apiVersion: v1\nkind: ConfigMap\n"+c.text+"\ndata: {run.sh: \"cd ${HOME}\"}\n", substituting(nil))
		if problems != "" || !strings.Contains(objects, c.want) {
			t.Errorf("%s: %s: %s\n%s", name, c.reason, problems, objects)
		}
	}
	objects, _, problems := outcome(t, crd, substituting(map[string]string{"v": "y"}))
	if problems != "" || !strings.Contains(objects, "write ${HOME}") || !strings.Contains(objects, "x: \"y\"") && !strings.Contains(objects, "x: y") {
		t.Errorf("schemas of definitions only document: %s\n%s", problems, objects)
	}
	if _, _, problems := outcome(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {run.sh: \"cd ${HOME}\"}\n", substituting(nil)); problems !=
		`bundle.yaml (document 1): ConfigMap x: spec.processors[0].variables: data["run.sh"]: the variable HOME has no value, and no default stands with it; give the variable a value, write $${ for what is no variable, or annotate the object with satchel.dev/substitute: disabled [overlay]` {
		t.Error(problems)
	}
	patched := list(
		overlay.Processor{Patch: &overlay.Patch{Text: "metadata: {annotations: {satchel.dev/substitute: disabled}}", Target: target(overlay.Selector{Kind: "ConfigMap"})}},
		overlay.Processor{Variables: &overlay.Variables{}},
	)
	if _, _, problems := outcome(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {run.sh: \"cd ${HOME}\"}\n", patched); problems != "" {
		t.Errorf("a patch may opt an object out: %s", problems)
	}
}

// TestVariablesAreSources: which source of values wins, and what is reported about names.
func TestVariablesAreSources(t *testing.T) {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: \"${a}${b}\", \"${a}\": z}\n"
	o := list(overlay.Processor{Variables: &overlay.Variables{Given: map[string]string{"a": "given", "unused": "x"}, Read: map[string]string{"a": "read", "b": "read", "bad.name": "x"}}})
	objects, warnings, problems := outcome(t, text, o)
	if problems != "" || !strings.Contains(objects, "a: givenread\n") || !strings.Contains(objects, "given: z") {
		t.Errorf("%s\n%s", problems, objects)
	}
	if diff := cmp.Diff([]string{"spec.processors[0].variables.values: no object has the variable unused"}, warnings); diff != "" {
		t.Error(diff)
	}
	if _, _, problems := outcome(t, text, substituting(map[string]string{"a.b": "x"})); problems != `spec.processors[0].variables.values["a.b"]: this is no name of a variable; use letters, digits and underscores, no digit first [overlay]` {
		t.Error(problems)
	}
	o.Processors[0].Variables.Read["b"] = "hunter22\xff"
	if _, _, problems := outcome(t, text, o); !strings.Contains(problems, "data.a: the value of the variable b is not valid UTF-8") || strings.Contains(problems, "hunter22") {
		t.Error(problems)
	}
	if _, _, problems := outcome(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {\"${a}\": x, given: y}\n", substituting(map[string]string{"a": "given"})); !strings.Contains(problems, "the key is the same as another one") {
		t.Error(problems)
	}
}

// TestFluxF26NothingChanges: a value of a custom resource becomes a number only where that prints back unchanged.
func TestFluxF26NothingChanges(t *testing.T) {
	for text, want := range map[string]any{
		"3": int64(3), "0": int64(0), "-7": int64(-7), "9223372036854775807": int64(9223372036854775807), "0.5": 0.5, "-1.25": -1.25, "true": true, "false": false,
		"2.40": "2.40", "1.0": "1.0", "1.10": "1.10", "+5": "+5", "-0": "-0", "-0.0": "-0.0", ".5": ".5", "5.": "5.", "004": "004", "00": "00", "1.2.3": "1.2.3",
		"1e3": "1e3", "1.5e3": "1.5e3", "2.0E1": "2.0E1", "0x1F": "0x1F", "0o17": "0o17", "0b1": "0b1", "1_000": "1_000", "yes": "yes", "True": "True", "null": "null", "~": "~",
		"71111111117000000000": "71111111117000000000", "9223372036854775808": "9223372036854775808", "0.1000000000000000055511": "0.1000000000000000055511",
		"123456789.123456789123": "123456789.123456789123", "0.0000001": "0.0000001", ".inf": ".inf", "NaN": "NaN", "2026-01-31": "2026-01-31", "12:30:45": "12:30:45", " 3": " 3", "": "",
		`"2.40"`: "2.40", `"3"`: "3", `"true"`: "true", "'3'": "'3'",
	} {
		const manifest = "apiVersion: example.org/v1\nkind: Gizmo\nmetadata: {name: x}\nspec: {v: \"${V}\", list: [\"${V}\"], part: \"v${V}\"}\n"
		objects, _, problems := outcome(t, manifest, substituting(map[string]string{"V": text}))
		if problems != "" {
			t.Errorf("%q: %s", text, problems)
			continue
		}
		var got struct {
			Spec struct {
				V    any
				List []any
				Part string
			}
		}
		if err := yaml.Unmarshal([]byte(strings.TrimPrefix(objects, "---\n")), &got, func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d }); err != nil {
			t.Fatal(err)
		}
		printed, _ := got.Spec.V.(json.Number)
		if _, isText := want.(string); !isText && printed == "" {
			printed = json.Number(fmt.Sprint(got.Spec.V))
		}
		if isText, _ := want.(string); printed == "" && got.Spec.V != isText || printed != "" && printed.String() != fmt.Sprint(want) {
			t.Errorf("%q became %#v, want %#v", text, got.Spec.V, want)
		}
		if got.Spec.Part != "v"+text || !cmp.Equal(got.Spec.List, []any{got.Spec.V}) {
			t.Errorf("%q: %#v", text, got.Spec)
		}
	}
}
