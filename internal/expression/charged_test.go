// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/types"
)

// longest is how long a single call may take, and most what it may allocate.
const (
	longest = 200 * time.Millisecond
	most    = 64 << 20
)

// operands have a megabyte, or are lists of lists with more values than there is time.
func operands() map[string]any {
	many := make([]any, 1<<16)
	names := map[string]any{}
	for i := range many {
		many[i] = int64(i)
		names[fmt.Sprintf("name-%09d", i)] = "value"
	}
	tree := any([]any{int64(1)})
	for range 40 {
		tree = []any{tree, tree}
	}
	text := strings.Repeat("a", 1<<20)
	return map[string]any{
		"text": text, "end": text[:1<<19] + "b", "number": strings.Repeat("1", 1<<20), "pattern": "(a?){200}b",
		"octets": []byte(text), "list": many, "texts": slices.Repeat([]any{text[:1<<10]}, 1<<10), "map": names, "tree": tree,
		"optional": types.OptionalOf(types.String(text)), "integer": int64(1 << 19), "double": 1e300, "truth": true,
		"moment": time.Unix(0, 0), "pause": time.Hour, "nothing": nil,
	}
}

// templates are how functions that have no name are written; "" where an expression cannot call one.
var templates = map[string]string{
	"!_": "!$A", "-_": "-$A", "@in": "$A in $B", "_!=_": "$A != $B", "_%_": "$A % $B", "_&&_": "$A && $B", "_*_": "$A * $B", "_+_": "$A + $B",
	"_-_": "$A - $B", "_/_": "$A / $B", "_<=_": "$A <= $B", "_<_": "$A < $B", "_==_": "$A == $B", "_>=_": "$A >= $B", "_>_": "$A > $B",
	"_?._": "$A.?x", "_?_:_": "$A ? $B : $C", "_[?_]": "$A[?$B]", "_[_]": "$A[$B]", "_||_": "$A || $B",
	"@not_strictly_false": "$A.all(x, x == $B)", "__not_strictly_false__": "", keyFunction: "", optionalFunction: "", "_in_": "", "in": "",
}

// forms are all ways to write a call of a function, with the operands $A, $B, $C and $D.
func forms(t *testing.T) []string {
	t.Helper()
	env, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for name, function := range env.Functions() {
		if template, found := templates[name]; found {
			all = append(all, template)
			continue
		}
		for _, overload := range function.OverloadDecls() {
			args := []string{"$A", "$B", "$C", "$D"}[:len(overload.ArgTypes())]
			if overload.IsMemberFunction() {
				all = append(all, fmt.Sprintf("$A.%s(%s)", name, strings.Join(args[1:], ", ")))
			} else {
				all = append(all, fmt.Sprintf("%s(%s)", name, strings.Join(args, ", ")))
			}
		}
	}
	all = append(all, "[?$A, ?$B]", "{$A: $B}", "{$A: $B}[$C]", "{?$A: $B}", "$A.map(x, x + $B)", "$A.filter(x, x == $B)", "$A.exists_one(x, x == $B)", "$A.optMap(x, x + $B)", "has($A.x)")
	slices.Sort(all)
	return slices.Compact(slices.DeleteFunc(all, func(s string) bool { return s == "" }))
}

// TestM37EveryFunction calls every function of the environment with large operands of all types: none takes longer than 0.2 s.
func TestM37EveryFunction(t *testing.T) {
	values := operands()
	names := slices.Sorted(maps.Keys(values))
	seconds := []string{"end", "integer", "list", "map", "octets", "optional", "pattern", "text", "texts", "tree"}
	calls, slowest, refused := 0, time.Duration(0), 0
	for _, form := range forms(t) {
		for _, a := range names {
			for _, b := range others(form, "$B", seconds) {
				for _, c := range others(form, "$C", []string{"text", "integer"}) {
					text := strings.NewReplacer("$A", a, "$B", b, "$C", c, "$D", "integer").Replace(form)
					took, err := evaluate(t, text, values)
					calls++
					if IsExpensive(err) {
						refused++
					}
					if took > slowest {
						slowest = took
						t.Logf("%s: %s, %.100v", text, took.Round(time.Millisecond), err)
					}
				}
			}
		}
	}
	t.Logf("%d calls, %d of them refused", calls, refused)
}

// others are the names for a place of a form; any one if it has no such place.
func others(form, place string, names []string) []string {
	if !strings.Contains(form, place) {
		return names[:1]
	}
	return names
}

func evaluate(t *testing.T, text string, values map[string]any) (time.Duration, error) {
	t.Helper()
	e, err := Parse(nil, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	_, err = e.Holds(t.Context(), nil, values)
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	if took > 6*longest {
		t.Errorf("%s took %s, want at most %s: %.200v", text, took, longest, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > most {
		t.Errorf("%s allocated %d MiB, want at most %d", text, took>>20, most>>20)
	}
	var known *Error
	if err != nil && (!errors.As(err, &known) || len(known.Message) > 1000 || strings.Contains(known.Message, "internal error")) {
		t.Errorf("%s: %.300v", text, err)
	}
	return took, err
}

// TestM37Variants wants what no single function does to be stopped as soon.
func TestM37Variants(t *testing.T) {
	values := operands()
	doubled := "[1]" + strings.Repeat(".map(x, [x, x])", 30)
	for name, text := range map[string]string{
		"a search":                          "text.indexOf(end) >= 0",
		"a search that fails":               "text.lastIndexOf(end) >= 0",
		"behind an alternative":             "text.indexOf(end) >= 0 || true",
		"behind a loop":                     "list.exists(x, text.indexOf(end) >= x)",
		"sets":                              "sets.equivalent(list, list)",
		"a list that doubles":               doubled + " == " + doubled,
		"a list that doubles, as a key":     "{1: 2}[" + doubled + "] == 2",
		"a list that doubles, as optional":  "[?" + doubled + "].size() == 1",
		"a list that doubles, as text":      "json.encode(" + doubled + ") == ''",
		"a list that doubles, formatted":    "'%s'.format([" + doubled + "]) == ''",
		"a list that doubles, in a list":    doubled + " in [" + doubled + "]",
		"a list that grows by itself":       "[list]" + strings.Repeat(".map(x, x + x)", 30) + ".size() == 1",
		"a text that grows by itself":       "[text]" + strings.Repeat(".map(x, x + x)", 30) + ".size() == 1",
		"loops without a function":          "list.all(a, list.all(b, list.all(c, true)))",
		"a filter of a filter":              "list.filter(a, list.filter(b, true) == [])",
		"replacements that multiply":        "text" + strings.Repeat(".replace('a', 'aaaaaaaaaaaaaaaa')", 30) + " == ''",
		"a join that multiplies":            "list.map(x, 'a').join(text) == ''",
		"precision":                         "list.map(x, '%.99f'.format([1e300])).size() == 0",
		"time zones":                        "list.all(x, timestamp(0).getHours('Europe/Berlin') >= 0)",
		"patterns":                          "list.all(x, text.substring(0, 60000).matches('(a|b|c)*d') || true)",
		"equal texts":                       "list.all(x, text == text)",
		"keys of a megabyte":                "list.all(x, {text: x, end: x}.size() == 2)",
		"a variable named as what is spent": "list.all(work, list.all(x, true))",
	} {
		t.Run(name, func(t *testing.T) {
			took, err := evaluate(t, text, values)
			t.Logf("%s: %v", took.Round(time.Millisecond), err)
			if err == nil {
				t.Error("it was evaluated")
			}
		})
	}
}

// TestM37Reading wants an expression to be read as soon, whatever it is.
func TestM37Reading(t *testing.T) {
	fill := func(open, inner, closing string) string {
		n := (Longest - len(inner)) / len(open+closing)
		return strings.Repeat(open, n) + inner + strings.Repeat(closing, n)
	}
	texts := map[string]string{
		"conditions": fill("a.b == 1 || ", "true", ""), "functions": fill("a.size() == 1 || ", "true", ""), "lists": fill("[", "", "]"),
		"maps": fill("{1: ", "1", "}"), "indexes": fill("a[", "a", "]"), "loops": fill("a.all(x, ", "true", ")"), "choices": fill("a ? b : ", "a", ""),
		"lists of lists": fill("[[a], ", "a", "]"), "texts": fill("'a' + ", "'a'", ""), "optionals": fill("[?", "a", "]"), "calls": fill("dyn(", "a", ")"),
		"parentheses": fill("(", "a", ")"), "negations": fill("!", "a", ""), "fields": fill("a.", "a", ""),
	}
	for _, depth := range []int{10, 20, 30, 35, 45, 60, 90, 240} {
		for name, parts := range map[string][3]string{
			"lists": {"[", "", "]"}, "maps": {"{1: ", "1", "}"}, "pairs": {"[[a], ", "a", "]"}, "indexes": {"a[", "a", "]"},
			"loops": {"a.map(x, ", "x", ")"}, "sums": {"[a] + [", "a", "]"}, "choices": {"a ? b : ", "a", ""}, "optionals": {"optional.of(", "a", ")"}, "chains": {"", "[a]", ".map(x, [x])"}, "doubles": {"", "[a]", ".map(x, [x, {1: x}])"}, "additions": {"1 + ", "1", ""}, "products": {"", "1", " * (1 + 1"},
		} {
			texts[fmt.Sprintf("%s to a depth of %d", name, depth)] = strings.Repeat(parts[0], depth) + parts[1] + strings.Repeat(parts[2], depth)
		}
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			for kind, read := range map[string]func(string) (*Expression, error){
				"Parse":   func(s string) (*Expression, error) { return Parse(nil, s) },
				"Compile": func(s string) (*Expression, error) { return Compile(nil, s, "a", "b") },
			} {
				began := time.Now()
				_, err := read(text)
				if took := time.Since(began); took > 6*longest {
					t.Errorf("%s of %d bytes took %s, want at most %s: %v", kind, len(text), took, longest, err)
				} else {
					t.Logf("%s took %s: %.90v", kind, took, err)
				}
			}
		})
	}
}

// TestM37OneBudget wants many expressions of one object to be bounded together, whether they are read or evaluated.
func TestM37OneBudget(t *testing.T) {
	running, most := 0, 0
	budget := NewBudget(func() func() {
		running++
		most = max(most, running)
		return func() { running-- }
	})
	e, err := Parse(budget, "list.all(a, list.all(b, true))")
	if err != nil {
		t.Fatal(err)
	}
	values, began := operands(), time.Now()
	for range 1000 {
		if _, err = e.Holds(t.Context(), budget, values); !IsExpensive(err) {
			t.Fatalf("got %v", err)
		}
	}
	if took := time.Since(began); took > 6*5*longest || most != 1 || running != 0 {
		t.Errorf("1,000 evaluations took %s, at most %d at once, %d still run", took, most, running)
	}
	if !strings.Contains(err.Error(), "together") {
		t.Errorf("got %v", err)
	}
	for text, read := range map[string]func(*Budget, string) (*Expression, error){
		"Parse": Parse, "Compile": func(b *Budget, text string) (*Expression, error) { return Compile(b, text, "a") },
	} {
		budget, began := NewBudget(nil), time.Now()
		for range 1000 {
			_, err = read(budget, strings.Repeat("a.size() == 1 || ", 240)+"true")
		}
		if took := time.Since(began); took > 6*5*longest || !IsExpensive(err) || !strings.Contains(err.Error(), "too long together") {
			t.Errorf("%s: 1,000 times took %s: %v", text, took, err)
		}
	}
}
