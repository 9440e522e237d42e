// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/expression"
)

// object is one as the API server gives it.
func object() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"generation": int64(2), "labels": map[string]any{"app": "web"}},
		"status": map[string]any{"observedGeneration": int64(2), "conditions": []any{
			map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Synced", "status": "False"},
		}},
		"data": map[string]any{"text": strings.Repeat("a", 1<<20), "short": strings.Repeat("a", 70<<10)},
	}
}

func TestHolds(t *testing.T) {
	for text, c := range map[string]struct {
		reason string
		want   bool
		says   string // of the error
	}{
		"status.observedGeneration == metadata.generation":                                              {"fields at the top are variables", true, ""},
		"status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')":                     {"the usual form in Flux", true, ""},
		"status.conditions.exists(e, e.type == 'Synced' && e.status == 'True')":                         {"the other answer", false, ""},
		"has(status.phase) && status.phase == 'Done'":                                                   {"what is optional is asked for", false, ""},
		"metadata.?annotations[?'x'].orValue('') == ''":                                                 {"optional values", true, ""},
		"metadata.labels.app.split('e').size() == 2":                                                    {"functions over texts", true, ""},
		"sets.contains(['a'], ['a']) && base64.decode('YQ==') == b'a'":                                  {"sets and encoders", true, ""},
		"status.conditions.map(e, e.type).join(',') == 'Ready,Synced'":                                  {"texts of parts", true, ""},
		"'%s-%d'.format(['a', 3]).replace('a', 'b') == 'b-3'":                                           {"parts of texts", true, ""},
		"timestamp('2026-01-02T03:04:05Z').getHours('Europe/Berlin') == 4":                              {"times", true, ""},
		"duration('90s') > duration('1m') && size([1] + [2]) == 2":                                      {"durations, and lists", true, ""},
		"{'a': 1, 'b': 2}[metadata.labels.app == 'web' ? 'a' : 'b'] == 1":                               {"a key may be computed", true, ""},
		"status.conditions[size(status.conditions) - 1].type == 'Synced'":                               {"as may an index", true, ""},
		"[1, 2][metadata.labels] == 1":                                                                  {"but it is no map", false, "a key has to be"},
		"[1, 2][[0, 1][[1, 0][1]]] == 1":                                                                {"in an index", true, ""},
		"metadata.labels[?metadata.?nothing.orValue('app')].orValue('') == 'web'":                       {"and an optional one", true, ""},
		"[?metadata.?labels, ?metadata.?nothing].size() == 1":                                           {"optional elements", true, ""},
		"[?metadata.labels].size() == 1":                                                                {"which have to be optional", false, "optional value"},
		"optional.of(1).or(optional.none()).optMap(x, x + 1).value() == 2":                              {"optional values by functions", true, ""},
		"!status.conditions.exists_one(e, e.type != 'None') && 'app' in metadata.labels && 2 in [1, 2]": {"membership", true, ""},
		"status.phase == 'Done'":                                                                        {"a field that is not there is no answer", false, "no such key: phase"},
		"foo":                                                                                           {"nor one at the top", false, "no such attribute"},
		"metadata.generation":                                                                           {"a number is no answer", false, "true or false"},
		"'abc'.matches('^a.c$') && matches('a', 'a')":                                                   {"regular expressions", true, ""},
		"data.short.matches('(a*)*b')":                                                                  {"within bounds", false, "at most"},
		"status.conditions.all(e, e.missing)":                                                           {"nor is half of one", false, "no such key"},
	} {
		t.Run(text, func(t *testing.T) {
			e, err := expression.Parse(nil, text)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			got, err := e.Holds(t.Context(), nil, object())
			if got != c.want || (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %t, %v", c.reason, got, err)
			}
		})
	}
}

func TestCompile(t *testing.T) {
	for text, c := range map[string]struct{ reason, says string }{
		"dep.status.ready == self.spec.wanted": {"the objects are known", ""},
		"dep.status.ready":                     {"what a field holds is not", ""},
		"other.status.ready == true":           {"nothing else is", "undeclared reference to 'other'"},
		"dep.":                                 {"this is no expression", "1:5: Syntax error"},
		"'yes'":                                {"this is no bool", "string"},
		"dep":                                  {"nor is this", "true or false"},
		"dep.a.replace('a', dep.a) == ''":      {"what it takes is known when it is evaluated", ""},
		"dep.a.frob() == ''":                   {"this is no function", "undeclared reference to 'frob'"},
		"type(google.protobuf.Struct{fields: {}}) == type(1)":   {"messages are converted as a whole", "not offered"},
		strings.Repeat("(", 4097):                               {"it is not even read", "4096 bytes"},
		strings.Repeat("(", 4000):                               {"nor is its depth a danger", "the expression"},
		"dep.a == 'a' || " + strings.Repeat("!", 4000) + "true": {"nor this one", ""},
	} {
		t.Run(text[:min(len(text), 40)], func(t *testing.T) {
			_, err := expression.Compile(nil, text, "dep", "self")
			if c.says == "" && err != nil && strings.Count(text, "!") < 100 || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%s: %v", c.reason, err)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
		})
	}
}

// TestM22CostBombs wants expressions that would take hours or all memory to be stopped soon.
func TestM22CostBombs(t *testing.T) {
	digits := "[0,1,2,3,4,5,6,7,8,9]"
	nested := strings.Repeat(digits+".all(x, ", 12) + "true" + strings.Repeat(")", 12)
	many := make([]any, 20000)
	for i := range many {
		many[i] = map[string]any{"name": strings.Repeat("b", 100)}
	}
	data := object()
	data["spec"] = map[string]any{"items": many}
	for name, text := range map[string]string{
		"nested loops":     nested,
		"pairs":            "spec.items.all(a, spec.items.all(b, a.name == b.name))",
		"texts that grow":  "data.text + data.text + data.text + data.text + data.text == ''",
		"loops over texts": "spec.items.all(a, spec.items.all(b, data.text.lowerAscii() == data.text))",
		"expressions":      "spec.items.all(a, a.name.matches('(b*)*c(d|e)+f') || a.name.matches('(b*)*x') || true)",
		"lists that grow":  "spec.items.map(a, spec.items.map(b, spec.items)).size() == 0",
		"base64 in a loop": "spec.items.all(a, spec.items.all(b, base64.encode(bytes(data.text)) != ''))",
		"what has no cost": "spec.items.all(a, data.text.split('') != [] )",
	} {
		t.Run(name, func(t *testing.T) {
			e, err := expression.Parse(nil, text)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			_, err = e.Holds(t.Context(), nil, data)
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			if !expression.IsExpensive(err) {
				t.Errorf("not stopped: %v", err)
			}
			t.Logf("stopped after %s, having allocated %d MiB in all", took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20)
			if took > 6*time.Second {
				t.Errorf("stopped after %s, want about a second", took)
			}
		})
	}
}

// TestM27CountedRepetitions: what a counted repetition would compile to is refused before it is compiled, as is one that is
// matched with a string too long for its size; ordinary patterns match.
func TestM27CountedRepetitions(t *testing.T) {
	bomb := "(" + strings.Repeat("[a-z0-9]?", 8) + "){1000}Z"
	data := map[string]any{"name": "web-1", "bomb": bomb, "long": strings.Repeat("a", 60_000)}
	for name, c := range map[string]struct{ text, says string }{
		"in the expression":    {"name.matches('" + bomb + "')", "instructions"},
		"as a function":        {"matches(name, '" + bomb + "')", "instructions"},
		"in the data":          {"name.matches(bomb)", "instructions"},
		"beside another":       {"name.matches(bomb) && name.matches('web-.*')", "instructions"},
		"with a long string":   {"long.matches('(a?){900}b')", "repeat less"},
		"malformed":            {"name.matches('(')", "is no regular expression"},
		"ordinary":             {"name.matches('^web-[0-9]{1,4}$')", ""},
		"ordinary on a longer": {"long.matches('^a+$')", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := expression.Parse(nil, c.text)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			holds, err := e.Holds(t.Context(), nil, data)
			runtime.ReadMemStats(&after)
			if c.says == "" && (err != nil || !holds) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("it holds: %t, %v", holds, err)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 20 {
				t.Errorf("it took %d MiB", took)
			}
		})
	}
}

// TestHoldsEndsWithItsContext tells the end of a process from an expression that costs too much.
func TestHoldsEndsWithItsContext(t *testing.T) {
	e, err := expression.Parse(nil, "true")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Holds(ctx, nil, object()); !errors.Is(err, context.Canceled) || expression.IsExpensive(err) {
		t.Errorf("got %v", err)
	}
}
