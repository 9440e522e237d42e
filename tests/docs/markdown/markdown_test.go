// SPDX-License-Identifier: Apache-2.0

package markdown

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sample = `# A page: its "title"

See [the other](other.md#there) and [` + "`code`" + ` over two
lines](#a-page-its-title), but not ` + "`[this](nowhere)`" + `.

<!-- test: page kind BundleSource -->
<!-- a remark -->
## Fields
<!-- test: run
echo hidden
-->

<!-- test: exit 1 -->
<!-- test: needs yq,
jq -->
~~~sh
satchel get
~~~

## Fields

1. In a list:
   ~~~yaml
   a: [b](c)
     d: e
   ~~~
[end](https://example.org)
`

func TestParse(t *testing.T) {
	page, err := Parse("p.md", strings.ReplaceAll(sample, "~", "`"))
	if err != nil {
		t.Fatal(err)
	}
	want := Page{
		Name: "p.md",
		Steps: []Step{
			{Page: "p.md", Line: 9, Text: "\necho hidden", Hidden: true},
			{Page: "p.md", Line: 16, Language: "sh", Text: "satchel get\n", Marks: []Mark{{"exit", "1"}, {"needs", "yq, jq"}}},
			{Page: "p.md", Line: 23, Language: "yaml", Text: "a: [b](c)\n  d: e\n"},
		},
		Links:   []Link{{3, "other.md#there"}, {4, "#a-page-its-title"}, {27, "https://example.org"}},
		Anchors: map[string]bool{"a-page-its-title": true, "fields": true, "fields-1": true},
		Marks:   []Mark{{"kind", "BundleSource"}},
	}
	if diff := cmp.Diff(want, page); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, _ := page.Steps[1].Mark("exit"); got != "1" {
		t.Errorf("the mark exit is %q", got)
	}
}

func TestParseFails(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"open block":   {"the rest of the page would be code", "```sh\nls\n", "no end"},
		"open comment": {"the rest of the page would be invisible", "<!-- test: run\nls\n", "no end"},
		"unknown mark": {"a typing error must not switch a test off", "<!-- test: skipp why -->\n```sh\nls\n```\n", `no mark "skipp"`},
		"lonely mark":  {"it was meant for a block that is gone", "<!-- test: exit 1 -->\n", "no block follows"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("p.md", tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestKnownMarks(t *testing.T) {
	want := []string{"exit", "file", "in", "may", "needs", "output", "page", "parse", "run", "skip"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(known))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCommandLines(t *testing.T) {
	for name, tc := range map[string]struct{ reason, program, language, text, want string }{
		"pipe":    {"what follows is another program's", "satchel", "sh", "satchel rbac ./x | kubectl apply -f - && satchel get > x # satchel no\n", "rbac ./x;get"},
		"console": {"the other lines are output", "satchel", "console", "$ satchel get\nsatchel x\n", "get"},
		"plugin":  {"its name has two words", "kubectl satchel-migrate", "sh", "kubectl get x | kubectl satchel-migrate manifests -\nsatchel get\n", "manifests -"},
		"folded":  {"a line ends in a backslash", "satchel", "sh", "satchel get \\\n  -A\n", "get    -A"},
		"text":    {"no commands", "satchel", "text", "satchel get\n", ""},
	} {
		if got := strings.Join(Step{Language: tc.language, Text: tc.text}.CommandLines(tc.program), ";"); got != tc.want {
			t.Errorf("%s (%s): got %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}
