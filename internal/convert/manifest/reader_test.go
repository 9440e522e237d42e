// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

const canary = "CANARY-7f3a"

// read decodes one file within limits.
func read(name, content string, limits manifest.Limits) ([]manifest.Manifest, []manifest.Problem) {
	reader := manifest.NewReader(fstest.MapFS{name: {Data: []byte(content)}}, limits)
	return reader.Read(name), reader.Problems()
}

// TestM8Values pins how scalars and structures are read.
func TestM8Values(t *testing.T) {
	const object = "apiVersion: v1\nkind: X\nv: "
	for name, c := range map[string]struct {
		reason, text string
		want         any
	}{
		"text":           {"plain words", "hello world", "hello world"},
		"quoted":         {"quotes keep a text a text", `"yes"`, "yes"},
		"literal":        {"block scalars are never booleans", "|-\n  yes", "yes"},
		"yaml 1.1 yes":   {"kubectl reads YAML 1.1", "yes", true},
		"yaml 1.1 n":     {"a single letter too", "n", false},
		"yaml 1.1 off":   {"and the switches", "Off", false},
		"boolean":        {"the usual words", "true", true},
		"null":           {"empty is null", "~", nil},
		"nothing":        {"missing is null", "", nil},
		"integer":        {"numbers are int64", "42", int64(42)},
		"hexadecimal":    {"as kubectl reads it", "0x1F", int64(31)},
		"octal":          {"file modes are octal", "0644", int64(420)},
		"underscores":    {"YAML 1.1 groups digits", "1_000", int64(1000)},
		"largest":        {"int64 is exact", "9223372036854775807", int64(9223372036854775807)},
		"larger":         {"beyond int64 JSON has floats", "9223372036854775808", float64(9223372036854775808)},
		"much larger":    {"also beyond uint64", "99999999999999999999", 1e20},
		"fraction":       {"floats stay floats", "1.5", 1.5},
		"whole float":    {"JSON writes 2.0 as 2", "2.0", int64(2)},
		"exponent":       {"as JSON would carry it", "1e3", int64(1000)},
		"date":           {"dates are texts", "2024-01-02", "2024-01-02"},
		"tagged text":    {"a tag decides", "!!str 5", "5"},
		"tagged integer": {"also for numbers", `!!int "5"`, int64(5)},
		"binary":         {"base64 of a text", "!!binary aGk=", "hi"},
		"alias":          {"aliases are expanded", "[&a {b: 1}, *a]", []any{map[string]any{"b": int64(1)}, map[string]any{"b": int64(1)}}},
		"merge":          {"a key of its own wins over a merged one", "[&a {b: 1, c: 2}, {<<: *a, b: 3}]", []any{map[string]any{"b": int64(1), "c": int64(2)}, map[string]any{"b": int64(3), "c": int64(2)}}},
		"merge list":     {"the first of several mappings wins", "{<<: [{a: 1}, {a: 2, b: 2}]}", map[string]any{"a": int64(1), "b": int64(2)}},
		"boolean key":    {"kubectl's YAML 1.1 trap, keys included", "{n: 1}", map[string]any{"false": int64(1)}},
		"number key":     {"JSON keys are texts", "{1: a, 1.5: b}", map[string]any{"1": "a", "1.5": "b"}},
		"flow JSON":      {"JSON is YAML", `{"a": [1, "b", null]}`, map[string]any{"a": []any{int64(1), "b", nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := read("a.yaml", object+c.text, manifest.Limits{})
			if len(problems) > 0 || len(got) != 1 {
				t.Fatalf("%s: %d objects, problems %v", c.reason, len(got), problems)
			}
			if diff := cmp.Diff(c.want, got[0].Object.Object["v"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestM8JSON pins what is particular to JSON.
func TestM8JSON(t *testing.T) {
	got, problems := read("a.json", `{"kind": "X", "n": 1.0, "big": 12345678901234567890, "s": "\ud83d\ude00", "t": true}
{"kind": "Y"}`, manifest.Limits{})
	if len(problems) > 0 || len(got) != 2 {
		t.Fatalf("%d objects, problems %v", len(got), problems)
	}
	want := map[string]any{"kind": "X", "n": 1.0, "big": 12345678901234567890.0, "s": "😀", "t": true}
	if diff := cmp.Diff(want, got[0].Object.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got[1].Document != 2 {
		t.Errorf("the second object is of document %d", got[1].Document)
	}
}

// TestM8Refused is hostile and broken input: each is refused with the rule, the file and the document, and no value of the
// file shows.
func TestM8Refused(t *testing.T) {
	deep := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	bomb := "a0: &a0 [" + canary + "]\n"
	for i := 1; i < 30; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
	}
	for name, c := range map[string]struct {
		reason, file, content, rule, message string
		document                             int
	}{
		"alias bomb":           {"billions of laughs end early", "a.yaml", "kind: X\n---\n" + bomb, manifest.RuleLimit, "aliases", 2},
		"alias in itself":      {"a cycle ends at the depth", "a.yaml", "a: &a [*a]", manifest.RuleLimit, "nested", 1},
		"depth":                {"deep nesting costs stacks", "a.yaml", "a: " + deep(10_000), manifest.RuleLimit, "nested", 1},
		"depth beyond parser":  {"the parser has its own limit", "a.yaml", "a: " + deep(100_000), manifest.RuleSyntax, "depth", 1},
		"depth of JSON":        {"JSON is bounded as well", "a.json", `{"a": ` + deep(200) + `}`, manifest.RuleLimit, "nested", 1},
		"duplicate key":        {"the last one would win silently", "a.yaml", "---\nkind: X\nd:\n  a: " + canary + "\n  a: x" + canary, manifest.RuleSyntax, `line 5: the key "a" appears twice in one mapping, with different values; the first is in line 4`, 1},
		"duplicate mapping":    {"also where they differ far inside", "a.yaml", "kind: X\nd: {a: [{b: " + canary + "}]}\nd: {a: [{b: x}]}", manifest.RuleSyntax, `line 3: the key "d" appears twice`, 1},
		"duplicate type":       {"a string is no number", "a.yaml", "kind: X\nd: 1\nd: '1'", manifest.RuleSyntax, `line 3: the key "d" appears twice`, 1},
		"duplicate inside":     {"an equal pair with a differing one inside", "a.yaml", "kind: X\nd: {a: 1, a: 2}\nd: {a: 1, a: 2}", manifest.RuleSyntax, `line 2: the key "a" appears twice`, 1},
		"duplicate JSON key":   {"in JSON too", "a.json", "{\"a\": {\"b\": 1,\n\"c\": 2},\n\"a\": 2}", manifest.RuleSyntax, `line 3: the key "a" appears twice in one mapping, with different values; the first is in line 1`, 1},
		"duplicate by meaning": {"1 and \"1\" are the same key in JSON", "a.yaml", "{1: a, \"1\": b}", manifest.RuleSyntax, "appears twice", 1},
		"tab":                  {"tabs cannot indent", "a.yaml", "a:\n\t- " + canary, manifest.RuleSyntax, "not valid YAML", 1},
		"not UTF-8":            {"bytes that are no text", "a.yaml", "a: \xff\xfe", manifest.RuleSyntax, "UTF-8", 0},
		"UTF-16":               {"another encoding", "a.yaml", "a\x00:\x00 \x00b\x00", manifest.RuleSyntax, "NUL", 0},
		"infinity":             {"JSON has none", "a.yaml", "a: .inf", manifest.RuleValue, "infinity", 1},
		"not a number":         {"nor this", "a.yaml", "a: .NaN", manifest.RuleValue, "not-a-number", 1},
		"unknown tag":          {"tags are not executed", "a.yaml", "a: !ruby/object " + canary, manifest.RuleSyntax, "tag", 1},
		"wrong tag":            {"a tag must be true", "a.yaml", "a: !!int " + canary, manifest.RuleValue, "tag", 1},
		"set":                  {"JSON has no sets", "a.yaml", "a: !!set {b}", manifest.RuleSyntax, "tag", 1},
		"binary":               {"bytes that are no text", "a.yaml", "a: !!binary /w==", manifest.RuleValue, "!!binary", 1},
		"unknown alias":        {"the name of the anchor is not quoted", "a.yaml", "a: *" + canary, manifest.RuleSyntax, "anchor", 1},
		"complex key":          {"JSON keys are texts", "a.yaml", "? [a]\n: b", manifest.RuleSyntax, "key", 1},
		"null key":             {"nothing is no key", "a.yaml", "{~: 1}", manifest.RuleSyntax, "empty key", 1},
		"merge of a text":      {"only mappings merge", "a.yaml", "<<: " + canary, manifest.RuleSyntax, "merge", 1},
		"text":                 {"a README with the wrong name", "a.yaml", canary, manifest.RuleIdentity, "a string", 1},
		"list":                 {"a list of objects is no List", "a.yaml", "- kind: X", manifest.RuleIdentity, "a list", 1},
		"list of strings":      {"items must be objects", "a.yaml", "kind: List\nitems: [" + canary + "]", manifest.RuleIdentity, "a string", 1},
		"half JSON":            {"a cut file", "a.json", `{"a": "` + canary, manifest.RuleSyntax, "too early", 1},
		"broken JSON":          {"the text around is not quoted", "a.json", `{"a": ` + canary + `}`, manifest.RuleSyntax, "near byte", 1},
		"huge JSON number":     {"no float holds it", "a.json", `{"a": 1e999}`, manifest.RuleValue, "too large", 1},
		"lists in lists":       {"nesting is bounded", "a.json", nested(7), manifest.RuleLimit, "lists lie in lists", 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := read(c.file, c.content, manifest.Limits{})
			if len(problems) != 1 {
				t.Fatalf("%s: %d problems: %v", c.reason, len(problems), problems)
			}
			p := problems[0]
			if p.File != c.file || p.Document != c.document || p.Rule != c.rule || !strings.Contains(p.Message, c.message) {
				t.Errorf("%s: got %+v", c.reason, p)
			}
			if strings.Contains(p.String(), canary) {
				t.Errorf("a value of the file shows: %s", p)
			}
		})
	}
}

// nested is a List in a List, and so on.
func nested(levels int) string {
	if levels == 0 {
		return `{"kind": "X"}`
	}
	return `{"kind": "List", "items": [` + nested(levels-1) + `]}`
}

// TestM8Limits: input at a limit is accepted, one more is refused.
func TestM8Limits(t *testing.T) {
	for name, c := range map[string]struct {
		limits  manifest.Limits
		content func(n int) string
		at      int
	}{
		"file bytes":     {manifest.Limits{FileBytes: 100}, func(n int) string { return "kind: " + strings.Repeat("x", n-6) }, 100},
		"total bytes":    {manifest.Limits{TotalBytes: 100}, func(n int) string { return "kind: " + strings.Repeat("x", n-6) }, 100},
		"documents":      {manifest.Limits{Documents: 5}, func(n int) string { return strings.Repeat("---\n", n) }, 5},
		"objects":        {manifest.Limits{Objects: 5}, func(n int) string { return strings.Repeat("---\nkind: X\n", n) }, 5},
		"items":          {manifest.Limits{Objects: 5}, func(n int) string { return "kind: List\nitems:\n" + strings.Repeat("- kind: X\n", n) }, 5},
		"object bytes":   {manifest.Limits{ObjectBytes: 100}, func(n int) string { return `{"kind":"X","v":"` + strings.Repeat("x", n-19) + `"}` }, 100},
		"depth":          {manifest.Limits{Depth: 5}, func(n int) string { return "a: " + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) }, 5},
		"JSON depth":     {manifest.Limits{Depth: 5}, func(n int) string { return `{"a": ` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}" }, 5},
		"values":         {manifest.Limits{Values: 5}, func(n int) string { return "kind: X\na: [" + strings.Repeat("{}, ", n-3) + "]" }, 5},
		"aliased values": {manifest.Limits{Values: 9}, func(n int) string { return "kind: &x X\na: [" + strings.Repeat("*x, ", n-3) + "]" }, 9},
		"JSON values":    {manifest.Limits{Values: 5}, func(n int) string { return `{"kind": "X", "a": [1` + strings.Repeat(", 1", n-4) + "]}" }, 5},
		"JSON documents": {manifest.Limits{Documents: 5}, func(n int) string { return strings.Repeat("{}\n", n) }, 5},
	} {
		t.Run(name, func(t *testing.T) {
			if _, problems := read("a.yaml", c.content(c.at), c.limits); len(problems) > 0 {
				t.Errorf("refused at the limit: %v", problems)
			}
			_, problems := read("a.yaml", c.content(c.at+1), c.limits)
			if len(problems) != 1 || problems[0].Rule != manifest.RuleLimit {
				t.Errorf("one more than the limit gives %v", problems)
			}
		})
	}
}

// TestM8TotalCountsAllFiles: the limit on the whole ends the reading at the file that breaks it.
func TestM8TotalCountsAllFiles(t *testing.T) {
	files := fstest.MapFS{}
	for i := range 4 {
		files[fmt.Sprintf("%d.yaml", i)] = &fstest.MapFile{Data: []byte("kind: ABCD")}
	}
	reader := manifest.NewReader(files, manifest.Limits{TotalBytes: 20})
	read := 0
	for i := range 4 {
		read += len(reader.Read(fmt.Sprintf("%d.yaml", i)))
	}
	if problems := reader.Problems(); read != 2 || len(problems) != 1 || problems[0].File != "2.yaml" {
		t.Errorf("%d objects, problems %v", read, problems)
	}
}

// TestM8ManyProblems: a bundle in which everything is wrong does not give endless lists.
func TestM8ManyProblems(t *testing.T) {
	_, problems := read("a.yaml", strings.Repeat("--- x\n", 10_000), manifest.Limits{})
	if len(problems) != 101 || problems[100].Rule != manifest.RuleLimit {
		t.Errorf("%d problems, the last is %v", len(problems), problems[len(problems)-1])
	}
}

// TestDocuments pins what counts as a document and how lists are taken apart.
func TestDocuments(t *testing.T) {
	for name, c := range map[string]struct {
		reason, content string
		want            []string // document:kind
	}{
		"empty":         {"no document at all", "", nil},
		"comments":      {"comments only", "# a\n---\n# b\n", nil},
		"trailing":      {"a separator at the end", "kind: A\n---\n", []string{"1:A"}},
		"counted":       {"empty documents count", "---\n---\nkind: A\n...\n---\nkind: B", []string{"2:A", "3:B"}},
		"byte order":    {"a mark in front", "\ufeffkind: A", []string{"1:A"}},
		"list":          {"a List is its items", "kind: List\nitems: [{kind: A}, {kind: B}]", []string{"1:A", "1:B"}},
		"list of lists": {"also inside", "kind: List\nitems: [{kind: List, items: [{kind: A}]}]", []string{"1:A"}},
		"empty list":    {"no items", "kind: List\nitems:", nil},
		"typed list":    {"items inherit what the list implies", "apiVersion: v1\nkind: PodList\nitems: [{}]", []string{"1:Pod"}},
		"kind only":     {"a kind that ends in List without items is an object", "kind: AllowList\nspec: {}", []string{"1:AllowList"}},
		"JSON":          {"several documents", "{\"kind\": \"A\"}\n{\"kind\": \"B\"}", []string{"1:A", "2:B"}},
		"JSON in YAML":  {"separators make it YAML", "{\"kind\": \"A\"}\n---\n{\"kind\": \"B\"}", []string{"1:A", "2:B"}},
		"flow":          {"braces do not make JSON", "{kind: A}", []string{"1:A"}},
	} {
		t.Run(name, func(t *testing.T) {
			manifests, problems := read("a.yaml", c.content, manifest.Limits{})
			var got []string
			for _, m := range manifests {
				got = append(got, fmt.Sprintf("%d:%s", m.Document, m.Object.GetKind()))
			}
			if diff := cmp.Diff(c.want, got); diff != "" || len(problems) > 0 {
				t.Errorf("%s: problems %v (-want +got):\n%s", c.reason, problems, diff)
			}
		})
	}
}

// TestM9Memory: the values of many empty objects stay within a small multiple of the text.
func TestM9Memory(t *testing.T) {
	const items = 500_000
	content := "kind: X\nv: [" + strings.Repeat("{},", items) + "]"
	var kept []manifest.Manifest
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			kept, _ = read("a.yaml", content, manifest.Limits{})
		}
	}).AllocedBytesPerOp()
	t.Logf("%d bytes of manifest allocate %d bytes, %d times as much", len(content), allocated, allocated/int64(len(content)))
	if len(kept) != 1 || allocated > 250*int64(len(content)) {
		t.Errorf("%d objects, %d bytes allocated", len(kept), allocated)
	}
}

// TestValuesAreJSON: whatever is read can be written as JSON and copied.
func TestValuesAreJSON(t *testing.T) {
	got, _ := read("a.yaml", "kind: X\na: [1, 1.5, true, null, b, {c: d}]", manifest.Limits{})
	if _, err := json.Marshal(got[0].Object.DeepCopy().Object); err != nil {
		t.Error(err)
	}
}
