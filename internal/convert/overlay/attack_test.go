// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
)

// many are so many Deployments.
func many(n int) []manifest.Manifest {
	all := make([]manifest.Manifest, n)
	for i := range all {
		labels := map[string]any{"app": fmt.Sprintf("web-%d", i)}
		all[i] = manifest.Manifest{File: "many.yaml", Document: i + 1, Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": fmt.Sprintf("web-%d", i), "labels": labels},
			"spec": map[string]any{
				"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": fmt.Sprintf("web-%d", i)}},
				"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": fmt.Sprintf("web-%d", i)}}, "spec": map[string]any{
					"serviceAccountName": fmt.Sprintf("web-%d", i),
					"containers":         []any{map[string]any{"name": "web", "image": "quay.io/org/web:1", "env": []any{map[string]any{"name": "A", "value": "${a:=b}"}}}},
				}},
			},
		}}}
	}
	return all
}

// TestM8Overlays: objects that overlays make too large are refused. What cannot be made within the limits of a process ends
// with the process: TestM8BombsEndInWorkers.
func TestM8Overlays(t *testing.T) {
	all := &overlay.Selector{}
	aliases := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		aliases += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	bomb := "metadata: {annotations: {x: y}}\nspec:\n  a: &a [" + strings.Repeat("{},", 400) + "{}]\n  b: [" + strings.Repeat("*a,", 400) + "*a]\n"
	patch := func(text string, selector *overlay.Selector) overlay.Options {
		return list(patches(overlay.Patch{Text: text, Target: selector})...)
	}
	var hundred []overlay.Patch
	for range 100 {
		hundred = append(hundred, overlay.Patch{Text: "metadata: {labels: {x: y}}", Target: &overlay.Selector{Name: "(a*)*b|(.*.*.*)*z", LabelSelector: "app in (a,b,c)"}})
	}
	long := strings.Repeat("x", 1000)
	between := func(p overlay.Processor, all []overlay.Processor) (mixed []overlay.Processor) {
		for _, one := range all {
			mixed = append(mixed, one, p)
		}
		return mixed
	}
	label := overlay.Processor{Metadata: &overlay.Metadata{Labels: map[string]string{"a": "b"}}}
	grow := overlay.Processor{Variables: &overlay.Variables{Given: map[string]string{"a": strings.Repeat("${a}", 1000)}}}
	var rewrites []overlay.Rewrite
	for i := range 100 {
		rewrites = append(rewrites, overlay.Rewrite{From: fmt.Sprintf("r%d.example", i), To: "m"})
	}
	many16k := overlay.Processor{Patch: &overlay.Patch{Text: "metadata: {annotations: {x: '" + strings.Repeat("${a}", 16_000) + "'}}", Target: all}}
	grows := overlay.Processor{Patch: &overlay.Patch{Text: "metadata: {annotations: {x: '${a//x/" + strings.Repeat("y", 60_000) + "}'}}", Target: all}}
	annotation := overlay.Processor{Patch: &overlay.Patch{Text: "metadata: {annotations: {x: '${a}'}}", Target: all}}
	for name, c := range map[string]struct {
		n    int
		o    overlay.Options
		says string
	}{
		"aliases that multiply":   {1, patch(aliases, all), "spec.processors[0].patch"},
		"depth":                   {1, patch(strings.Repeat("{a: ", 150)+"b"+strings.Repeat("}", 150), all), "spec.processors[0].patch"},
		"depth by operations":     {1, patch(depthByOperations(), all), "nests deeper than 100"},
		"a large patch on many":   {300, patch("metadata: {annotations: {x: "+strings.Repeat("y", 60_000)+"}}", all), "up to here have more than 16777216 bytes"},
		"many values":             {100, patch("spec: {x: ["+strings.Repeat("{},", 20_000)+"{}]}", all), "up to here have more than 1000000 values"},
		"expressions of the spec": {2_000, list(patches(hundred...)...), ""},
		"variables that grow":     {6_000, list(overlay.Processor{Patch: &overlay.Patch{Text: "metadata: {annotations: {x: '${x}${x}${x}'}}", Target: all}}, overlay.Processor{Variables: &overlay.Variables{Given: map[string]string{"x": long}}}), "up to here have more than 16777216 bytes"},
		"aliases in many patches": {1, list(patches(slices.Repeat([]overlay.Patch{{Text: bomb, Target: all}}, 10)...)...), "spec.processors[6].patch (document 1)"},
		"aliases on many objects": {250, patch("spec: {x: ["+strings.Repeat("[], ", 5_000)+"[]]}", all), "up to here have more than 1000000 values"},
		"variables that multiply": {1, list(slices.Concat([]overlay.Processor{annotation}, slices.Repeat([]overlay.Processor{grow}, 99))...), "after spec.processors[3].variables, the objects up to here have more than 16777216 bytes"},
		"a value in many places":  {1, list(many16k, overlay.Processor{Variables: &overlay.Variables{Read: map[string]string{"a": strings.Repeat("x", 1<<20)}}}), "after spec.processors[1].variables, the objects up to here have more than 16777216 bytes"},
		"replacements that grow":  {1, list(grows, overlay.Processor{Variables: &overlay.Variables{Read: map[string]string{"a": strings.Repeat("x", 1<<20)}}}), "after spec.processors[1].variables, the objects up to here have more than 16777216 bytes"},
		"aliases in many items":   {1, list(between(label, patches(slices.Repeat([]overlay.Patch{{Text: bomb, Target: all}}, 10)...))...), "spec.processors[12].patch (document 1)"},
		"annotations that add up": {300, list(slices.Repeat([]overlay.Processor{{Metadata: &overlay.Metadata{Annotations: map[string]string{"x": strings.Repeat("y", 60_000)}}}}, 2)...), "after spec.processors[0].metadata, the objects up to here have more than 16777216 bytes"},
		"names that add up":       {2_000, list(slices.Repeat([]overlay.Processor{{Names: &overlay.Names{Prefix: strings.Repeat("a", 63)}}}, 100)...), "with spec.processors[3].names its name has"},
		"names many times":        {200, list(slices.Repeat([]overlay.Processor{{Names: &overlay.Names{Prefix: "a"}}}, 100)...), ""},
		"rewrites in many items":  {1_000, list(slices.Repeat([]overlay.Processor{{ImageRewrites: rewrites}}, 100)...), ""},
		"variables in many items": {200, list(slices.Repeat([]overlay.Processor{{Variables: &overlay.Variables{}}}, 100)...), ""},
		"patches in many items":   {1_000, list(between(label, patches(hundred[:50]...))...), ""},
		"open braces":             {1, list(overlay.Processor{Patch: &overlay.Patch{Text: "metadata: {annotations: {x: '" + strings.Repeat("${a:=", 10_000) + "'}}", Target: all}}, overlay.Processor{Variables: &overlay.Variables{}}), "a ${ has no end"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, problems := overlay.Apply(many(c.n), bundle(), c.o)
			said := ""
			for _, p := range problems {
				said += p.String() + "\n"
			}
			if !strings.Contains(said, c.says) || c.says == "" && said != "" {
				t.Errorf("said %.500q, want %q", said, c.says)
			}
			took := time.Since(began)
			t.Log(took)
			if took > 30*time.Second {
				t.Errorf("took %s, want less than 5 s", took)
			}
		})
	}
}

// depthByOperations nests deeper with each operation.
func depthByOperations() string {
	path, text := "/spec/x", "- {op: add, path: /spec/x, value: {}}\n"
	for range 150 {
		path += "/x"
		text += "- {op: add, path: " + path + ", value: {}}\n"
	}
	return text
}

// rotated are processors, of which another one is the first.
func rotated(all []overlay.Processor, first uint8) []overlay.Processor {
	at := int(first) % len(all)
	return slices.Concat(all[at:], all[:at])
}

// FuzzApply: whatever a spec says, in whatever order, it ends in objects or problems, and a Secret's values stand in none of these.
func FuzzApply(f *testing.F) {
	f.Add("spec: {replicas: 2}", "web", "p-", "${a:=b}", "quay.io", "value", uint8(0))
	f.Add(`[{"op":"copy","from":"/spec","path":"/spec/a"}]`, ".*", "", "${a//b/${c}}", "quay.io/org", "x", uint8(1))
	f.Add("$patch: delete", "a|b", "", "$${a} ${#a} ${a:1:2}", "m", "", uint8(2))
	f.Add("- {op: move, from: /metadata/name, path: /kind}", "", "9", "${{ x }}", "", "\xff", uint8(3))
	f.Add("spec: {template: {spec: {containers: [{name: web, $patch: delete}, {$patch: replace}]}}}", "", "", "", "docker.io", "1", uint8(4))
	f.Fuzz(func(t *testing.T, patch, name, prefix, text, from, value string, first uint8) {
		const canary = "hunter22canary"
		manifests := many(2)
		manifests[1].Object.SetName("other")
		manifests[1].Object.Object["data"] = map[string]any{"t": text}
		result, problems := overlay.Apply(manifests, bundle(), list(rotated([]overlay.Processor{
			{Patch: &overlay.Patch{Text: patch, Target: &overlay.Selector{Name: name}}}, {Patch: &overlay.Patch{Text: patch}}, {Names: &overlay.Names{Prefix: prefix}},
			{Images: []overlay.Image{{Name: "quay.io/org/web", NewTag: "2"}}},
			{Variables: &overlay.Variables{Read: map[string]string{"a": value, "c": canary}}}, {Metadata: &overlay.Metadata{Labels: map[string]string{"team": "a"}}},
			{ImageRewrites: []overlay.Rewrite{{From: from, To: "m"}}},
		}, first)...))
		for _, p := range problems {
			if strings.Contains(p.String(), canary) && !strings.Contains(patch+name+text, canary) {
				t.Errorf("quotes a value: %s", p)
			}
		}
		if len(problems) > 0 {
			return
		}
		for _, m := range result.Manifests {
			if _, err := m.Object.MarshalJSON(); err != nil && m.Object.GetKind() != "" {
				t.Error(err)
			}
		}
	})
}

// TestM27PatternsOfTargets: what a counted repetition would compile to is refused before it is compiled, for each pattern and
// for all of an object together; ordinary targets are not.
func TestM27PatternsOfTargets(t *testing.T) {
	large := "(" + strings.Repeat("[a-z0-9]?", 8) + "){1000}Z"
	objects := many(2000)
	ran := func(names ...string) (overlay.Result, []manifest.Problem, time.Duration) {
		var all []overlay.Patch
		for _, name := range names {
			all = append(all, overlay.Patch{Text: "metadata: {labels: {x: y}}", Target: &overlay.Selector{Name: name}})
		}
		began := time.Now()
		result, problems := overlay.Apply(objects, bundle(), list(patches(all...)...))
		return result, problems, time.Since(began)
	}
	_, problems, took := ran(slices.Repeat([]string{large}, 100)...)
	if len(problems) == 0 || !strings.Contains(problems[0].String(), "spec.processors[0].patch.target: name: ") || !strings.Contains(problems[0].String(), "instructions") {
		t.Errorf("one pattern: %v", problems)
	}
	if took > 30*time.Second {
		t.Errorf("refusing takes %s", took)
	}
	several := make([]string, 100)
	for i := range several {
		several[i] = fmt.Sprintf("(a%d?){300}Z", i)
	}
	if _, problems, _ := ran(several...); len(problems) == 0 || !strings.Contains(problems[0].String(), "all patterns of this object together") {
		t.Errorf("many patterns: %v", problems)
	}
	var mixed []overlay.Processor
	for _, name := range several {
		mixed = append(mixed, overlay.Processor{Metadata: &overlay.Metadata{Labels: map[string]string{"a": "b"}}},
			overlay.Processor{Patch: &overlay.Patch{Text: "metadata: {labels: {x: y}}", Target: &overlay.Selector{Name: name}}})
	}
	if _, problems := overlay.Apply(many(2), bundle(), list(mixed...)); len(problems) == 0 || !strings.Contains(problems[0].String(), "all patterns of this object together") {
		t.Errorf("many patterns, with other processors between: %v", problems)
	}
	if err := overlay.CheckTargets(list(mixed...)); err == nil || !strings.Contains(err.Error(), "all patterns of this object together") {
		t.Errorf("many patterns, with other processors between, before a conversion: %v", err)
	}
	if _, problems, _ := ran("web-.*", "web-[0-9]{1,4}", "(api|web)-1"); len(problems) > 0 {
		t.Errorf("ordinary patterns: %v", problems)
	}
}
