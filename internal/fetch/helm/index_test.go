// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/versions"
)

// chosen reads an index for the newest version of a chart.
func chosen(t testing.TB, index, chart string) (*entry, *chooser, error) {
	t.Helper()
	anything, err := versions.Parse("*-0")
	if err != nil {
		t.Fatal(err)
	}
	c := &chooser{chart: chart, newest: versions.Newest{Range: anything}}
	if err := readEntries(strings.NewReader(index), c); err != nil {
		return nil, c, err
	}
	found, err := c.choice()
	return found, c, err
}

// All the styles in which tools write an index are read.
func TestStyles(t *testing.T) {
	want := &entry{name: "app", version: "1.2.0", digest: "abc", urls: []string{"https://example.org/app-1.2.0.tgz"}}
	for name, index := range map[string]string{
		"helm":           "apiVersion: v1\nentries:\n  app:\n  - digest: abc\n    name: app\n    urls:\n    - https://example.org/app-1.2.0.tgz\n    version: 1.2.0\n",
		"indented lists": "---\napiVersion: v1\nentries:\n    app:\n        - digest: abc\n          name: app\n          urls:\n              - https://example.org/app-1.2.0.tgz\n          version: 1.2.0\n",
		"quotes":         "'apiVersion': v1\n\"entries\":\n  'app':\n  - \"digest\": 'abc'\n    'name': app\n    urls: [\"https://example.org/app-1.2.0.tgz\"]\n    version: \"1.2.0\"\n",
		"comments":       "# of an index\n%YAML 1.2\n--- # here\nentries: # charts\n\n  # the app\n  app: # versions\n  - # the newest\n    digest: abc # SHA-256\n    name: app\n    urls:\n    # where\n    - https://example.org/app-1.2.0.tgz\n    version: 1.2.0\n",
		"dash alone":     "entries:\n  app:\n  -\n    digest: abc\n    name: app\n    urls:\n    - https://example.org/app-1.2.0.tgz\n    version: 1.2.0\n",
		"windows":        "\ufeffentries:\r\n  app:\r\n  - digest: abc\r\n    name: app\r\n    urls:\r\n    - https://example.org/app-1.2.0.tgz\r\n    version: 1.2.0\r\n",
		"no last end":    "entries:\n  app:\n  - digest: abc\n    name: app\n    urls:\n    - https://example.org/app-1.2.0.tgz\n    version: 1.2.0",
		"dependencies": "entries:\n  app:\n  - dependencies:\n    - name: redis\n      version: 9.9.9\n      urls: []\n    digest: abc\n    name: app\n    urls:\n    - https://example.org/app-1.2.0.tgz\n" +
			"    version: 1.2.0\n    annotations:\n      version: 8.0.0\n      text: |\n        version: 7.0.0\n        - version: 6.0.0\n",
		"other charts": "entries:\n  aaa:\n  - version: 9.0.0\n    description: |\n      entries:\n        app:\n        - version: 5.0.0\n  app:\n  - version: 1.2.0\n    name: app\n    digest: abc\n    urls: [https://example.org/app-1.2.0.tgz]\n" +
			"  zzz:\n  - version: 9.0.0\n",
		"long line":    "entries:\n  app:\n  - icon: data:image/png;base64," + strings.Repeat("A", 100_000) + "\n    version: 1.2.0\n    name: app\n    digest: abc\n    urls: [https://example.org/app-1.2.0.tgz]\n",
		"folded":       "entries:\n  app:\n  - version: >-\n      1.2.0\n    name: app\n    digest:\n      abc\n    urls:\n    - >-\n      https://example.org/app-1.2.0.tgz\n",
		"json":         `{"apiVersion":"v1","x":[1,{"entries":{}}],"entries":{"aaa":[{"version":"9.0.0"}],"app":[{"name":"app","version":"1.2.0","digest":"abc","urls":["https://example.org/app-1.2.0.tgz"]}],"b":[]}}`,
		"json in YAML": " \n{\"entries\": {\"app\": [{\"name\": \"app\", \"version\": \"1.2.0\", \"digest\": \"abc\", \"urls\": [\"https://example.org/app-1.2.0.tgz\"]}]}}\n",
	} {
		got, _, err := chosen(t, index, "app")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(entry{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What the reader does not know is refused, with the line.
func TestMalformedIndexes(t *testing.T) {
	for name, tc := range map[string]struct {
		index  string
		reason fetch.Reason
		says   string
	}{
		"flow":         {"entries: {app: [{version: 1.0.0}]}\n", fetch.InvalidContent, "line 1: values in brackets"},
		"flow chart":   {"entries:\n  app: [{version: 1.0.0}]\n", fetch.InvalidContent, "line 2: values in brackets"},
		"flow entry":   {"entries:\n  app:\n  - {version: 1.0.0}\n", fetch.InvalidContent, "line 3: values in brackets"},
		"anchor":       {"entries:\n  app: &a\n  - version: 1.0.0\n", fetch.InvalidContent, "line 2: values in brackets, tags, anchors"},
		"alias":        {"entries:\n  other: &a\n  - version: 1.0.0\n  app: *a\n", fetch.InvalidContent, "line 4: values in brackets, tags, anchors"},
		"alias inside": {"entries:\n  app:\n  - version: &v 1.0.0\n    digest: *v\n    urls: []\n", fetch.InvalidContent, "digest is malformed"},
		"complex key":  {"entries:\n  ? [a]\n  : b\n", fetch.InvalidContent, "line 2: values in brackets"},
		"no mapping":   {"entries:\n  app:\n  - 1.0.0\n", fetch.InvalidContent, "line 3: it has no key"},
		"list":         {"- a\n- b\n", fetch.InvalidContent, "line 1: a list where"},
		"text":         {"Not found\n", fetch.InvalidContent, "line 1: it has no key"},
		"outdented":    {"entries:\n   other:\n   - version: 1\n  app:\n", fetch.InvalidContent, "line 4: it is indented less"},
		"in entry":     {"entries:\n  app:\n  -   digest: abc\n    version: 1.0.0\n", fetch.InvalidContent, "line 4: it is indented less"},
		"bad version":  {"entries:\n  app:\n  - version: [1]\n", fetch.InvalidContent, "version is malformed"},
		"large entry":  {"entries:\n  app:\n  - urls:\n" + strings.Repeat("    - https://example.org/app.tgz\n", 1000), fetch.LimitExceeded, "have more than 16384 bytes"},
		"many urls":    {"entries:\n  app:\n  - urls: [" + strings.Repeat("a,", 40) + "a]\n", fetch.InvalidContent, "urls is malformed"},
		"long url":     {"entries:\n  app:\n  - urls: [" + strings.Repeat("a", 40_000) + "]\n", fetch.LimitExceeded, "line 3"},
		"cut json":     {`{"entries":{"app":[{"version":"1.0.0"}`, fetch.InvalidContent, "not valid JSON"},
		"json types":   {`{"entries":{"app":[{"version":1}]}}`, fetch.InvalidContent, "not valid JSON"},
		"json list":    {`{"entries":[]}`, fetch.InvalidContent, "{ was expected"},
		"json value":   {`{"entries":{"aaa":"` + strings.Repeat("a", 5<<20) + `"}}`, fetch.LimitExceeded, "one of its values has more than"},
		"json urls":    {`{"entries":{"app":[{"urls":["a"` + strings.Repeat(`,"a"`, 40) + `]}]}}`, fetch.LimitExceeded, "more than 32 URLs"},
	} {
		_, _, err := chosen(t, tc.index, "app")
		if fetch.ReasonOf(err) != tc.reason || !strings.Contains(fmt.Sprint(err), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFluxF28BadEntries: entries that Helm leaves out are left out, in all styles, and a message names them where nothing is left.
func TestFluxF28BadEntries(t *testing.T) {
	const good = "  - name: app\n    version: 1.0.0\n    urls: [a.tgz]\n"
	for name, tc := range map[string]struct{ reason, bad, says string }{
		"Null":      {"an empty entry", "  - null\n", "entry 1 of the chart: it is empty"},
		"Tilde":     {"an empty entry", "  - ~\n", "entry 1 of the chart: it is empty"},
		"Capital":   {"an empty entry", "  - NULL # why\n", "entry 1 of the chart: it is empty"},
		"Dash":      {"an empty entry", "  -\n", "entry 1 of the chart: it has no name"},
		"Comment":   {"an empty entry", "  - # nothing\n", "entry 1 of the chart: it has no name"},
		"NoName":    {"leads to an archive that does not exist", "  - version: 9.9.9\n    urls: [z.tgz]\n", "entry 1 of the chart, version \"9.9.9\": it has no name"},
		"NullName":  {"the same", "  - version: 9.9.9\n    name: null\n", "it has no name"},
		"EmptyName": {"the same", "  - version: 9.9.9\n    name: ''\n", "it has no name"},
		"Path":      {"a name that leads elsewhere", "  - version: 9.9.9\n    name: ../app\n", "its name is not that of a chart"},
		"Parent":    {"a name that leads elsewhere", "  - version: 9.9.9\n    name: ..\n", "its name is not that of a chart"},
		"NoVersion": {"nothing to choose by", "  - name: app\n    urls: [y.tgz]\n", "it has no version"},
		"Words":     {"no version", "  - name: app\n    version: not.a.version\n", "version \"not.a.version\": its version is invalid"},
		"Dot":       {"no version", "  - name: app\n    version: 1.10.\n", "its version is invalid"},
		"Long":      {"no version", "  - name: app\n    version: 9.0.0-" + strings.Repeat("a", 200) + "\n", "its version is invalid"},
		"Several":   {"counted", "  - null\n  - version: 9.9.9\n  -\n", "the index has 3 invalid entries, which are left out; the first is entry 1"},
		"Nested":    {"the name is that of a dependency", "  - version: 9.9.9\n    dependencies:\n    - name: app\n", "it has no name"},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := "apiVersion: v1\nentries:\n  other: null\n  app:\n", "  third:\n  - null\n"
			for place, index := range map[string]string{"before": before + tc.bad + good + after, "after": before + good + tc.bad + after} {
				for style, text := range map[string]string{"yaml": index, "json": asJSON(t, index)} {
					found, c, err := chosen(t, text, "app")
					if err != nil || found.version != "1.0.0" || c.left.String() == "" {
						t.Errorf("%s, %s, %s: %+v, %q, %v", tc.reason, place, style, found, c.left.String(), err)
					}
				}
			}
			if _, _, err := chosen(t, before+tc.bad+after, "app"); fetch.ReasonOf(err) != fetch.NotFound || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func asJSON(t *testing.T, index string) string {
	t.Helper()
	data, err := kyaml.YAMLToJSON([]byte(index))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// More versions of the chart than are compared are refused before the index has ended; as many of another chart do not matter.
func TestManyVersions(t *testing.T) {
	var text strings.Builder
	text.WriteString("entries:\n  app:\n")
	for i := range maxVersions + 1 {
		fmt.Fprintf(&text, "  - name: app\n    version: 1.0.%d\n", i)
	}
	if _, _, err := chosen(t, text.String(), "app"); fetch.ReasonOf(err) != fetch.LimitExceeded || !strings.Contains(err.Error(), "more than 20000 versions") {
		t.Errorf("%v", err)
	}
	text.WriteString("  small:\n  - name: small\n    version: 1.0.0\n")
	if got, _, err := chosen(t, text.String(), "small"); err != nil || got.version != "1.0.0" {
		t.Errorf("%v, %v", got, err)
	}
}

// The reader finds what the whole library finds, in indexes that encoders write, with texts that look like YAML.
func TestSameAsLibrary(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // reproducible
	for range 200 {
		whole := randomIndex(random)
		indexes := map[string]string{"sigs": encoded(t, kyaml.Marshal, whole), "yaml": encoded(t, yaml.Marshal, whole), "json": encoded(t, json.Marshal, whole)}
		for style, index := range indexes {
			for chart, entries := range whole["entries"].(map[string]any) { //nolint:errcheck,forcetypeassert // made so
				compareWith(t, style, index, chart, entries.([]any)) //nolint:errcheck,forcetypeassert // made so
			}
		}
	}
}

func encoded(t *testing.T, marshal func(any) ([]byte, error), value any) string {
	t.Helper()
	data, err := marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func compareWith(t *testing.T, style, index, chart string, entries []any) {
	t.Helper()
	_, c, err := chosen(t, index, chart)
	if len(entries) == 0 && fetch.ReasonOf(err) == fetch.NotFound {
		return
	}
	if err != nil || len(c.seen) != len(entries) {
		t.Fatalf("%s, chart %q: %v, %d versions\n%s", style, chart, err, len(c.seen), index)
	}
	for _, one := range entries {
		fields := one.(map[string]any) //nolint:errcheck,forcetypeassert // made so
		if fields["version"] != c.best.version {
			continue
		}
		if fields["digest"] != c.best.digest || !cmp.Equal(fields["urls"], anyOf(c.best.urls)) {
			t.Fatalf("%s, chart %q: %+v instead of %v\n%s", style, chart, c.best, fields, index)
		}
	}
}

func anyOf(texts []string) []any {
	list := []any{}
	for _, text := range texts {
		list = append(list, text)
	}
	return list
}

// awkward are texts that encoders write in all of their styles.
var awkward = []string{
	"plain", "", "a: b", "- item", "# no comment", "'quoted'", "\"quoted\"", "true", "1.0", "null", "~", "*alias", "&anchor", "entries:", "  app:\n  - version: 9.9.9\n",
	"two\nlines", "ends\n", "\n\nbegins", "tab\there", "trailing ", "é ☃", "{a: b}", "[a]", "version: 9.9.9\nurls:\n- b\n", strings.Repeat("long words ", 30), "---\n...\n", "%TAG", "a\r\nb", "\u2028x",
}

func randomIndex(random *rand.Rand) map[string]any {
	text := func() string { return awkward[random.IntN(len(awkward))] }
	charts := map[string]any{}
	for i := range 1 + random.IntN(4) {
		entries := []any{}
		for j := range random.IntN(4) {
			fields := map[string]any{
				"name": "app", "version": fmt.Sprintf("%d.%d.0", j, random.IntN(20)), "digest": fmt.Sprintf("%064x", random.Uint64()),
				"urls":        []any{fmt.Sprintf("https://example.org/%d.tgz", random.IntN(100)), "charts/b.tgz"},
				"description": text(), "keywords": []any{text(), text()}, "annotations": map[string]any{text(): text(), "version": text()},
				"dependencies": []any{map[string]any{"name": text(), "version": "9.0.0", "urls": []any{}}}, "maintainers": []any{},
			}
			fields[text()+"x"] = text()
			entries = append(entries, fields)
		}
		charts[fmt.Sprintf("%s%d", []string{"app", "a b", "1.", "o'neil", "true ", "é"}[random.IntN(6)], i)] = entries
	}
	return map[string]any{"apiVersion": "v1", "entries": charts, "generated": text(), "serverInfo": map[string]any{text(): text()}}
}

// Nothing that is read makes the reader panic, and an entry that it finds is one of a few lines.
func FuzzIndex(f *testing.F) {
	f.Add(indexOf(entryOf("1.0.0", "abc", "app.tgz")))
	f.Add(`{"entries":{"app":[{"name":"app","version":"1.0.0","urls":["a"]},null]}}`)
	f.Add("entries:\n  'app':\n  - null\n  - version: \"1.0.0\"\n    name: app\n    urls: [a]\n  -\n...\n")
	f.Fuzz(func(t *testing.T, index string) {
		found, _, err := chosen(t, index, "app")
		if (found == nil) == (err == nil) {
			t.Fatalf("%v and %v", found, err)
		}
		if err != nil && fetch.ReasonOf(err) == "" {
			t.Fatalf("an error without a reason: %v", err)
		}
		if found != nil && (len(found.version) > maxVersion || len(found.urls) > maxURLs) {
			t.Fatalf("%+v", found)
		}
	})
}

// TestFluxF28WarningAboutLeftOutEntries: where an entry that is left out might have been chosen, a warning says so.
func TestFluxF28WarningAboutLeftOutEntries(t *testing.T) {
	const good = "  - name: app\n    version: 1.0.0\n    urls:\n    - a.tgz\n"
	for name, tc := range map[string]struct {
		reason  string
		entries string
		wanted  string // the range
		want    string // part of the warning; "" for none
	}{
		"newer without name":    {"a silent downgrade", "  - version: 1.2.0\n    urls:\n    - b.tgz\n" + good, "*", "the newer version 1.2.0 in the index is invalid and left out: it has no name"},
		"newer, at the end":     {"the order of an index is a convention", good + "  - version: 1.2.0\n    urls:\n    - b.tgz\n", "*", "newer version 1.2.0"},
		"older without name":    {"it would not have been chosen", "  - version: 0.9.0\n    urls:\n    - b.tgz\n" + good, "*", ""},
		"out of the range":      {"nor would that", "  - version: 2.0.0\n    urls:\n    - b.tgz\n" + good, "1.x", ""},
		"a prerelease":          {"no range names one", "  - version: 2.0.0-rc.1\n    urls:\n    - b.tgz\n" + good, "*", ""},
		"null before":           {"its version is not known", "  - null\n" + good, "*", "entry 1 of the chart in the index, which stands before it"},
		"null after":            {"an old entry", good + "  - null\n", "*", ""},
		"bad version before":    {"it may be the newest one", "  - name: app\n    version: newest\n    urls:\n    - b.tgz\n" + good, "*", "its version is invalid"},
		"bad version after":     {"", good + "  - name: app\n    version: oldest\n    urls:\n    - b.tgz\n", "*", ""},
		"the same, exactly":     {"what was asked for is there", "  - null\n  - version: 1.0.0\n    urls:\n    - b.tgz\n" + good, "1.0.0", ""},
		"nothing left out":      {"", "  - name: app\n    version: 1.2.0\n    urls:\n    - b.tgz\n" + good, "*", ""},
		"newer, and good newer": {"a good entry is newer still", "  - version: 1.2.0\n    urls:\n    - b.tgz\n  - name: app\n    version: 1.3.0\n    urls:\n    - b.tgz\n" + good, "*", ""},
	} {
		t.Run(name, func(t *testing.T) {
			wanted, err := versions.Parse(tc.wanted)
			if err != nil {
				t.Fatal(err)
			}
			c := &chooser{chart: "app", exact: tc.wanted, newest: versions.Newest{Range: wanted}}
			if err := readEntries(strings.NewReader("apiVersion: v1\nentries:\n  app:\n"+tc.entries), c); err != nil {
				t.Fatal(err)
			}
			chosen, err := c.choice()
			if err != nil {
				t.Fatal(err)
			}
			if got := c.warning(chosen); (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s: the warning is %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
