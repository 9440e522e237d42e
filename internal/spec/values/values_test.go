// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/convert/helm/document"
	"github.com/satchel-dev/satchel/internal/spec/values"
)

func doc(content string) values.Source { return values.Source{Where: "secret a/b", Content: content} }

func at(path, content string) values.Source {
	return values.Source{Where: "secret a/b", Content: content, TargetPath: path}
}

type m = map[string]any

func TestMerge(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		sources []values.Source
		inline  m
		want    m
	}{
		"nothing":          {reason: "a chart has values of its own", want: m{}},
		"order":            {reason: "each source wins over those before it", sources: []values.Source{doc("a: 1\nb: 1"), doc("b: 2\nc: 2")}, want: m{"a": 1.0, "b": 2.0, "c": 2.0}},
		"inline":           {reason: "the spec wins over all sources", sources: []values.Source{doc("a: 1"), doc("a: 2")}, inline: m{"a": "3"}, want: m{"a": "3"}},
		"mappings":         {reason: "they are merged at each depth", sources: []values.Source{doc("a: {b: {c: 1, d: 1}}"), doc("a: {b: {c: 2}, e: 2}")}, want: m{"a": m{"b": m{"c": 2.0, "d": 1.0}, "e": 2.0}}},
		"lists":            {reason: "they are replaced", sources: []values.Source{doc("a: [1, 2]"), doc("a: [3]")}, want: m{"a": []any{3.0}}},
		"null":             {reason: "it stays, for it takes away what the chart has", sources: []values.Source{doc("a: {b: 1}"), doc("a: null")}, want: m{"a": nil}},
		"another type":     {reason: "a mapping gives way to a text, and the other way round", sources: []values.Source{doc("a: {b: 1}\nc: x"), doc("a: x\nc: {b: 1}")}, want: m{"a": "x", "c": m{"b": 1.0}}},
		"missing":          {reason: "what is optional and not there says nothing", sources: []values.Source{doc("a: 1"), {Where: "x", Missing: true, TargetPath: "a"}}, want: m{"a": 1.0}},
		"empty":            {reason: "an empty document holds no values", sources: []values.Source{doc(""), doc("# nothing"), doc("null")}, want: m{}},
		"target path":      {reason: "one value deep within", sources: []values.Source{doc("a: {b: 1}"), at("a.c.d", "x")}, want: m{"a": m{"b": 1.0, "c": m{"d": "x"}}}},
		"list index":       {reason: "as helm --set has it", sources: []values.Source{at("a[1].b", "x")}, want: m{"a": []any{nil, m{"b": "x"}}}},
		"escaped dot":      {reason: "a dot may belong to a name", sources: []values.Source{at(`a.b\.c/d`, "x")}, want: m{"a": m{"b.c/d": "x"}}},
		"typed":            {reason: "as helm --set has it", sources: []values.Source{at("a", "8080"), at("b", "true"), at("c", "null"), at("d", "0123")}, want: m{"a": int64(8080), "b": true, "c": nil, "d": "0123"}},
		"quoted":           {reason: "quotes make a text", sources: []values.Source{at("a", `"8080"`), at("b", `'true'`)}, want: m{"a": "8080", "b": "true"}},
		"list in braces":   {reason: "as helm --set has it", sources: []values.Source{at("a", "{x,y}")}, want: m{"a": []any{"x", "y"}}},
		"comma":            {reason: "with a backslash it is part of the text", sources: []values.Source{at("a", `x\,y`)}, want: m{"a": "x,y"}},
		"quote by itself":  {reason: "it quotes nothing", sources: []values.Source{at("a", `'`)}, want: m{"a": "'"}},
		"path under later": {reason: "sources keep their order, whatever their form", sources: []values.Source{at("a.b", "x"), doc("a: {b: z}")}, want: m{"a": m{"b": "z"}}},
		"inline over path": {reason: "the spec wins over all sources", sources: []values.Source{at("a.b", "x")}, inline: m{"a": m{"b": "y"}}, want: m{"a": m{"b": "y"}}},
		"json":             {reason: "it is YAML, too", sources: []values.Source{doc(`{"a": [1, {"b": null}]}`)}, want: m{"a": []any{1.0, m{"b": nil}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := values.Merge(tc.sources, tc.inline)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMergeChangesNothing merges twice over the same values: neither the sources nor the values of the spec change.
func TestMergeChangesNothing(t *testing.T) {
	inline := m{"a": m{"b": m{"c": "1"}}}
	for _, path := range []string{"a.b.d", "a.b.e"} {
		merged, err := values.Merge([]values.Source{doc("a: {b: {c: 0}}"), at(path, "x")}, inline)
		if err != nil || len(merged["a"].(m)["b"].(m)) != 2 {
			t.Errorf("%v, %v", merged, err)
		}
	}
	if diff := cmp.Diff(m{"a": m{"b": m{"c": "1"}}}, inline); diff != "" {
		t.Errorf("the values of the spec were changed:\n%s", diff)
	}
}

// canary is a string that no message may show.
const canary = "s3cr3t-c4n4ry"

// TestI8ErrorsQuoteNothing uses invalid sources: the message says where and why, without the content.
func TestI8ErrorsQuoteNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		source values.Source
		want   string
	}{
		"a text":            {doc(canary), "secret a/b: line 1: values are a mapping"},
		"a list":            {doc("- " + canary), "secret a/b: line 1: values are a mapping"},
		"broken":            {doc("a: 1\nb: [" + canary + "\n"), "this is not valid YAML"},
		"broken in a line":  {doc("a: 1\n\t" + canary + ": x\n"), "line 2: this is not valid YAML"},
		"unknown anchor":    {doc("a: *" + canary), "this is not valid YAML"},
		"two documents":     {doc("a: 1\n---\n" + canary + ": 1"), "more than one document"},
		"bad tag":           {doc("a: !!int " + canary), "this is not valid YAML"},
		"deep":              {doc(strings.Repeat("{"+canary+": ", 200) + "1" + strings.Repeat("}", 200)), "nested more than 100 levels"},
		"many":              {doc("a: [" + strings.Repeat("1,", 100_001) + canary + "]"), "more than 100000 values"},
		"bomb":              {doc(bomb()), "more than 100000 values"},
		"large":             {doc("a: " + strings.Repeat("x", 4<<20)), "more than 4194304 bytes"},
		"path in a text":    {at("a.b", canary), "cannot be put at the path a.b"},
		"path in a list":    {at("c[0].x", canary), "cannot be put at the path c[0].x"},
		"open comma":        {at("d", "x,"+canary), "cannot be put at the path d"},
		"comma within":      {at("d", canary+",,x"), "cannot be put at the path d"},
		"deep path":         {at(strings.Repeat("a.", 40)+"b", canary), "more than 30 levels"},
		"binary":            {doc("\x00\x01" + canary), "this is not valid YAML"},
		"alias in its own":  {doc("a: &x [*x, " + canary + "]"), "nested more than 100 levels"},
		"open brace":        {at("d", "{"+canary), "cannot be put at the path d"},
		"alias at the top":  {doc("&x " + canary), "values are a mapping"},
		"invalid encodings": {doc("a: \xff\xfe" + canary), "this is not valid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := values.Merge([]values.Source{doc("a: text\nc: text"), tc.source}, nil)
			var wrong *values.Error
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%v, want %q", err, tc.want)
			}
			if strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "c4n4ry") {
				t.Errorf("the message shows the content: %v", err)
			}
		})
	}
}

// bomb doubles twenty times.
func bomb() string {
	text := "a0: &a0 [x, x]\n"
	for i := 1; i < 20; i++ {
		n := string(rune('a' + i))
		before := string(rune('a' + i - 1))
		if i == 1 {
			before = "a0"
		}
		text += n + ": &" + n + " [*" + before + ", *" + before + "]\n"
	}
	return text
}

// TestAllProblemsAtOnce: the error lists the problems of all sources.
func TestAllProblemsAtOnce(t *testing.T) {
	_, err := values.Merge([]values.Source{doc("- a"), doc("b: 1"), {Where: "configmap x/y", Content: "c"}}, nil)
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), "configmap x/y: line 1") {
		t.Errorf("%v", err)
	}
}

func TestSet(t *testing.T) {
	got := m{"a": m{"b": "x"}}
	if err := values.Set(got, "a.c=1,d={x,y}"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m{"a": m{"b": "x", "c": int64(1)}, "d": []any{"x", "y"}}, got); diff != "" {
		t.Error(diff)
	}
	if err := values.Set(got, "a"); err == nil || !strings.Contains(err.Error(), "--set a: ") {
		t.Errorf("%v", err)
	}
}

// M8: a few bytes that would expand to gigabytes are refused before.
func TestM8Values(t *testing.T) {
	long := "a: &a \"" + strings.Repeat("x", 900_000) + "\"\nb: [" + strings.Repeat("*a,", 45_000) + "*a]"
	if _, problem := document.Read([]byte(long)); !strings.Contains(problem, "with its aliases it becomes more than") {
		t.Errorf("got %q", problem)
	}
	for content, path := range map[string]string{
		"x,a[65535]=1,b[65535]=1": "a", "'x,a[65535]=1'": "a", "{x},a[65535]=1": "a", "1": "a[65535]", "2": "a[1][1][1][1]",
	} {
		source := values.Source{Where: "configmap x/y", Content: content, TargetPath: path}
		if _, err := values.Merge([]values.Source{source}, nil); err == nil {
			t.Errorf("%q at %s passes", content, path)
		}
	}
	for content, want := range map[string]any{"{x,y}": []any{"x", "y"}, `x\,y`: "x,y", "7": int64(7)} {
		got, err := values.Merge([]values.Source{{Where: "configmap x/y", Content: content, TargetPath: "a[3]"}}, nil)
		if diff := cmp.Diff([]any{nil, nil, nil, want}, got["a"]); err != nil || diff != "" {
			t.Errorf("%s: %v %s", content, err, diff)
		}
	}
}

// If a Secret has too many values to be redacted, the message is withheld.
func TestI8TooManySecrets(t *testing.T) {
	var many, former values.Scrubber
	for i := range 30_000 {
		many.Add(fmt.Sprintf("secret-%d", i))
	}
	former.Add(strings.Repeat("line\n", 30_000))
	after := values.Scrubber{}
	after.Add("another")
	after.After(&former)
	for name, s := range map[string]*values.Scrubber{"many": &many, "lines": &former, "after it": &after} {
		if got := s.Text("it says secret-29999 and line"); !strings.HasPrefix(got, "(withheld") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// M38: aliases multiply what a Secret holds, and 50 Secrets have one budget.
func TestM38AliasesOfSeveralSources(t *testing.T) {
	document := func(i int) string {
		return fmt.Sprintf("s%d:\n  a: &a %s\n  b: [%s]\n", i, strings.Repeat("x", 10_000), strings.TrimSuffix(strings.Repeat("*a, ", 200), ", "))
	}
	var sources []values.Source
	for i := range 50 {
		sources = append(sources, values.Source{Where: "secret", Content: document(i)})
	}
	if _, err := values.Merge(sources[:1], nil); err != nil {
		t.Errorf("one of 2 MB: %v", err)
	}
	if _, err := values.Merge(sources, nil); err == nil || !strings.Contains(err.Error(), "together with the documents before it") {
		t.Errorf("50 of 2 MB: %.200v", err)
	}
}
