// SPDX-License-Identifier: Apache-2.0

package crdsafety_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
)

type object = map[string]any

// versioned is a CRD with served versions that have the given schemas.
func versioned(schemas ...object) *unstructured.Unstructured {
	var versions []any
	for i, schema := range schemas {
		versions = append(versions, object{"name": fmt.Sprintf("v%d", i+1), "served": true, "storage": i == 0, "schema": object{"openAPIV3Schema": schema}})
	}
	return &unstructured.Unstructured{Object: object{
		"spec":   object{"scope": "Namespaced", "names": object{"kind": "Gadget"}, "versions": versions},
		"status": object{"storedVersions": []any{"v1"}},
	}}
}

// fields are count fields of one kind.
func fields(count int, of func(i int) any) object {
	all := object{}
	for i := range count {
		all[fmt.Sprintf("f%d", i)] = of(i)
	}
	return object{"type": "object", "properties": all}
}

// nested is a field below so many others.
func nested(levels int, name string, of any) object {
	for range levels {
		of = object{"type": "object", "properties": object{name: of}}
	}
	return of.(object)
}

func list(count int, of func(i int) any) []any {
	all := make([]any, count)
	for i := range all {
		all[i] = of(i)
	}
	return all
}

func same(value any) func(int) any { return func(int) any { return value } }

// field is a CRD with one field.
func field(keywords object) *unstructured.Unstructured {
	return versioned(object{"type": "object", "properties": object{"f": keywords}})
}

func many(count int) *unstructured.Unstructured {
	schemas := make([]object, count)
	for i := range schemas {
		schemas[i] = object{"type": "object"}
	}
	return versioned(schemas...)
}

// A CRD beyond a limit by one is not judged, wherever that is; a CRD at the
// limit is. The sizes are a promise: docs/adr/0007-crd-upgrade-safety.md has them.
func TestLimits(t *testing.T) {
	tests := map[string]struct {
		most int
		of   func(n int) *unstructured.Unstructured
		want string
	}{
		"versions":       {50, many, "has 51 versions, and at most 50"},
		"fields":         {40_000, func(n int) *unstructured.Unstructured { return versioned(fields(n-1, same(object{}))) }, "has 40001 fields, items and other schemas, and at most 40000"},
		"levels":         {100, func(n int) *unstructured.Unstructured { return versioned(nested(n-1, "a", object{"type": "string"})) }, "nests 101 levels or more, and at most 100"},
		"levels of list": {100, func(n int) *unstructured.Unstructured { return field(object{"default": levels(n - 2)}) }, "nests 101 levels or more, and at most 100"},
		"name":           {253, func(n int) *unstructured.Unstructured { return versioned(nested(1, strings.Repeat("a", n), object{})) }, "has a name of 254 characters, and at most 253"},
		"allOf":          {10_000, func(n int) *unstructured.Unstructured { return field(object{"allOf": list(n, same(object{}))}) }, "has 10001 schemas in allOf, anyOf, oneOf and not"},
		"anyOf":          {10_000, func(n int) *unstructured.Unstructured { return field(object{"anyOf": list(n, same(object{}))}) }, "has 10001 schemas in allOf"},
		"oneOf":          {10_000, func(n int) *unstructured.Unstructured { return field(object{"oneOf": list(n, same(object{}))}) }, "has 10001 schemas in allOf"},
		"not":            {10_000, func(n int) *unstructured.Unstructured { return versioned(fields(n, same(object{"not": object{}}))) }, "has 10001 schemas in allOf"},
		"enumeration": {40_000, func(n int) *unstructured.Unstructured {
			return field(object{"enum": list(n, func(i int) any { return i })})
		}, "has 40001 entries of required, enum"},
		"required": {40_000, func(n int) *unstructured.Unstructured { return field(object{"required": list(n, same("a"))}) }, "has 40001 entries of required, enum"},
		"keys of a list": {40_000, func(n int) *unstructured.Unstructured {
			return field(object{"x-kubernetes-list-map-keys": list(n, same("a"))})
		}, "has 40001 entries of required, enum"},
		"rules": {10_000, func(n int) *unstructured.Unstructured {
			return field(object{"x-kubernetes-validations": list(n, same(object{"rule": "a"}))})
		}, "has 10001 validation rules"},
		"bytes":     {4<<20 - 132, func(n int) *unstructured.Unstructured { return field(object{"pattern": strings.Repeat("a", n)}) }, "has 4194305 bytes beside its descriptions, and at most 4194304"},
		"odd bytes": {(4<<20 - 134) / 6, func(n int) *unstructured.Unstructured { return field(object{"pattern": strings.Repeat("\n", n)}) }, "has 41943"},
	}
	small := versioned(object{"type": "object"})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			within, beyond := tt.of(tt.most), tt.of(tt.most+1)
			if got := judged(t, within, within); got.Unjudged != "" {
				t.Errorf("at the limit: %s", got.Unjudged)
			}
			if got := judged(t, small, beyond); !strings.HasPrefix(got.Unjudged, "the desired CRD "+tt.want) || len(got.Breaking) > 0 {
				t.Errorf("desired: got %+v", got)
			}
			if got := judged(t, beyond, small); !strings.HasPrefix(got.Unjudged, "the live CRD "+tt.want) || len(got.Breaking) > 0 {
				t.Errorf("live: got %+v", got)
			}
		})
	}
}

// The work is bounded, too: three versions of 8,572 schemas are compared with
// themselves, and two by two, before and after.
func TestLimitOfComparisons(t *testing.T) {
	three := func(n int) *unstructured.Unstructured {
		of := fields(n-1, same(object{}))
		return versioned(of, of, of)
	}
	within, beyond := three(8_571), three(8_572)
	if got := judged(t, within, within); got.Unjudged != "" {
		t.Errorf("at the limit: %s", got.Unjudged)
	}
	want := "comparing the two CRDs takes 60004 comparisons of schemas, and at most 60000 can be judged"
	if got := judged(t, beyond, beyond); got.Unjudged != want {
		t.Errorf("got %q, want %q", got.Unjudged, want)
	}
	converted, _, _ := unstructured.NestedMap(beyond.Object, "spec")
	converted["conversion"] = object{"strategy": "Webhook"}
	if got := judged(t, beyond, &unstructured.Unstructured{Object: object{"spec": converted}}); got.Unjudged != "" {
		t.Errorf("with a webhook, which spares two thirds: %s", got.Unjudged)
	}
}

// levels is a list in a list in a list.
func levels(n int) any {
	var value any = []any{}
	for range n {
		value = []any{value}
	}
	return value
}

// worst are pairs of CRDs at the limits that take the most to compare: everything
// differs, and hardly any difference ends the comparison.
func worst() map[string][2]*unstructured.Unstructured {
	long := strings.Repeat("a", 253)
	number := func(most int) func(int) any {
		return func(int) any { return object{"type": "integer", "maximum": int64(most)} }
	}
	wide := func(of func(i int) any) *unstructured.Unstructured { return versioned(fields(39_990, of)) }
	differing := func(plus int) *unstructured.Unstructured {
		var all []object
		for i := range 50 {
			all = append(all, fields(403, number(1000-10*i+plus)))
		}
		return versioned(all...)
	}
	text := func(of string) *unstructured.Unstructured {
		return field(object{"pattern": of})
	}
	deep := func(of any) object {
		for range 48 {
			of = object{"allOf": []any{of}, "type": "object"}
		}
		return object{"anyOf": []any{of}}
	}
	numbered := func(format string) func(int) any { return func(i int) any { return fmt.Sprintf(format, i) } }
	constrained := func(n int) func(int) any {
		return func(int) any {
			n := int64(n)
			return object{"format": fmt.Sprint(n), "maximum": -n, "minimum": n, "maxItems": -n, "minItems": n, "maxLength": -n, "minLength": n, "maxProperties": -n, "multipleOf": n, "uniqueItems": n > 0}
		}
	}
	return map[string][2]*unstructured.Unstructured{
		"wider fields":        {wide(number(1)), wide(number(2))},
		"narrower fields":     {wide(number(2)), wide(number(1))},
		"fields that go":      {wide(number(1)), field(object{})},
		"defaults":            {wide(func(int) any { return object{"default": "a"} }), wide(func(int) any { return object{"default": "b"} })},
		"any conditions":      {versioned(fields(4_900, same(object{"anyOf": []any{object{"type": "a"}}}))), versioned(fields(4_900, same(object{"anyOf": []any{object{"type": "a"}, object{"type": "b"}}})))},
		"many constraints":    {versioned(fields(20_000, constrained(1))), versioned(fields(20_000, constrained(2)))},
		"versions":            {differing(0), differing(1000)},
		"two versions":        {versioned(fields(14_990, number(9)), fields(14_990, number(8))), versioned(fields(14_990, number(10)), fields(14_990, number(9)))},
		"long paths":          {versioned(nested(90, long, fields(30_000, number(1)))), versioned(nested(90, long, fields(30_000, number(2))))},
		"long paths that go":  {versioned(nested(90, long, fields(30_000, number(1)))), versioned(nested(90, long, object{"type": "object"}))},
		"long names":          {versioned(fields(14_000, func(i int) any { return object{long[:250] + fmt.Sprint(i): 1} })), versioned(fields(14_000, number(2)))},
		"deep conditions":     {versioned(fields(200, same(deep(object{"enum": []any{int64(1)}})))), versioned(fields(200, same(deep(object{"enum": []any{int64(2)}}))))},
		"lists of conditions": {field(object{"anyOf": list(9_990, func(i int) any { return object{"enum": []any{int64(i)}} })}), field(object{"anyOf": list(9_990, func(i int) any { return object{"enum": []any{int64(-i)}} })})},
		"enumeration":         {field(object{"enum": list(40_000, numbered("long value of an enumeration that is not there any more %d"))}), field(object{"enum": list(40_000, numbered("value %d"))})},
		"required":            {field(object{"required": list(40_000, numbered("a%d"))}), field(object{"required": list(40_000, numbered("b%d"))})},
		"required and there":  {field(object{"required": list(20_000, numbered("f%d"))}), field(object{"required": list(40_000, numbered("f%d"))})},
		"keys":                {field(object{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(40_000, numbered("a%d"))}), field(object{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(40_000, numbered("b%d"))})},
		"rules":               {field(object{"x-kubernetes-validations": list(10_000, func(i int) any { return object{"rule": fmt.Sprint(long, i)} })}), field(object{"x-kubernetes-validations": list(10_000, func(i int) any { return object{"rule": fmt.Sprint(i, long)} })})},
		"patterns":            {text(strings.Repeat("a", 4<<20-1000)), text(strings.Repeat("b", 4<<20-1000))},
		"odd bytes":           {text(strings.Repeat("\x01", 690_000)), text(strings.Repeat("\x02", 690_000))},
		"odd defaults":        {field(object{"default": strings.Repeat("\x01", 690_000)}), field(object{"default": strings.Repeat("<", 690_000)})},
		"odd values":          {field(object{"enum": list(40_000, same("\x01\x01\x01"))}), field(object{"enum": list(40_000, numbered("\x01%d"))})},
		"a default":           {field(object{"default": list(400_000, same(int64(1)))}), field(object{"default": list(400_000, same(int64(2)))})},
		"a default of lists":  {field(object{"default": list(4_000, same(levels(90)))}), field(object{"default": list(4_000, same(levels(89)))})},
		"patterns of names":   {field(object{"patternProperties": fields(39_000, number(1))["properties"]}), field(object{"patternProperties": fields(39_000, number(2))["properties"]})},
		"free, and not": {versioned(object{"x-kubernetes-preserve-unknown-fields": true}), func() *unstructured.Unstructured {
			all := fields(39_000, number(1))
			all["x-kubernetes-preserve-unknown-fields"] = true
			return versioned(all)
		}()},
	}
}

// cpuTime is the CPU time of this process, independent of the load of the machine.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// TestWorst bounds the cost of one comparison for any input:
// a second of CPU time and 100 MB are the target, six times as much fails.
// Allocated memory is more than was in use at any time.
func TestWorst(t *testing.T) {
	if raceDetector {
		t.Skip("time and memory say nothing under the race detector")
	}
	for name, pair := range worst() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := cpuTime(t)
			got := judged(t, pair[0], pair[1])
			took := cpuTime(t) - start
			runtime.ReadMemStats(&after)
			allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("%v, %d MB allocated, %d breaking, %d notable", took.Round(time.Millisecond), allocated, len(got.Breaking), len(got.Notable))
			if got.Unjudged != "" {
				t.Errorf("it is beyond the limits: %s", got.Unjudged)
			}
			if took > 6*time.Second || allocated > 600 {
				t.Errorf("took %v and %d MB", took, allocated)
			}
			if len(got.Breaking) > 1000 || len(got.Notable) > 1000 {
				t.Errorf("%d breaking and %d notable changes are kept", len(got.Breaking), len(got.Notable))
			}
			for _, change := range append(got.Breaking, got.Notable...) {
				bounded(t, change)
			}
		})
	}
}

// bounded checks the bounds of a message.
func bounded(t *testing.T, change crdsafety.Change) {
	t.Helper()
	if text := change.String(); len(change.Version) > 210 || len(change.Path) > 200 || len(change.What) > 210 || strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
		t.Errorf("unbounded words %q", text)
	}
}

// looks is a context that ends after it was checked so many times.
type looks struct {
	context.Context
	most, count int
}

func (l *looks) Err() error {
	if l.count++; l.count > l.most {
		return context.Canceled
	}
	return nil
}

// A comparison ends when its context ends; and so does one that found enough.
func TestJudgeStops(t *testing.T) {
	wide := func(most int64) *unstructured.Unstructured {
		return versioned(fields(30_000, same(object{"type": "integer", "maximum": most})))
	}
	interrupted := &looks{Context: t.Context(), most: 100}
	if _, err := crdsafety.Judge(interrupted, wide(1), wide(2)); !errors.Is(err, context.Canceled) || interrupted.count > 110 {
		t.Errorf("got %v after %d steps", err, interrupted.count)
	}
	enough := &looks{Context: t.Context(), most: 1_000_000}
	got, err := crdsafety.Judge(enough, versioned(nested(1, "a", wideOf(30, 2))), versioned(nested(1, "a", wideOf(30, 1))))
	if err != nil || len(got.Breaking) != 900 {
		t.Fatalf("got %v, %d changes", err, len(got.Breaking))
	}
	all := enough.count
	enough.count = 0
	if _, err := crdsafety.Judge(enough, versioned(nested(1, "a", wideOf(150, 2))), versioned(nested(1, "a", wideOf(150, 1)))); err != nil || enough.count > all+1000 {
		t.Errorf("got %v after %d steps, where 900 changes took %d", err, enough.count, all)
	}
}

// wideOf are n objects of n fields.
func wideOf(n int, most int64) object {
	return fields(n, func(int) any { return fields(n, same(object{"type": "integer", "maximum": most})) })
}

func BenchmarkJudge(b *testing.B) {
	for name, pair := range worst() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				judged(b, pair[0], pair[1])
			}
		})
	}
}

func judged(t testing.TB, live, desired *unstructured.Unstructured) crdsafety.Judgement {
	t.Helper()
	got, err := crdsafety.Judge(t.Context(), live, desired)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
