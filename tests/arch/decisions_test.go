// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDecisionRecords wants the form of docs/adr/README.md of each page, and its title in the index of that page.
//
// Why: readers look for the status and the decision of a page first, and find pages by the index.
// Remedy: add what the message names.
func TestDecisionRecords(t *testing.T) {
	var index string
	var records []sourceFile
	for _, f := range sources(t, "docs/adr/*.md") {
		if path.Base(f.name) == "README.md" {
			index = string(f.content)
		} else {
			records = append(records, f)
		}
	}
	if len(records) == 0 || index == "" {
		t.Fatal("no decision, or no index of them, was found: correct the pattern")
	}
	for _, f := range records {
		for _, problem := range decisionProblems(f, index) {
			t.Errorf("%s: %s", f.name, problem)
		}
	}
	if rows := len(indexRow.FindAllString(index, -1)); rows != len(records) {
		t.Errorf("docs/adr/README.md lists %d decisions of %d: add or remove rows", rows, len(records))
	}
}

var (
	indexRow      = regexp.MustCompile(`(?m)^\| \[\d+\]\(`)
	decisionTitle = regexp.MustCompile(`^# (\d+)\. (.+)\n\nStatus: (accepted|superseded by \[ADR \d+\]\(\d{4}-[a-z0-9-]+\.md\))\.`)
)

// decisionProblems returns how a decision record differs from the form.
func decisionProblems(f sourceFile, index string) []string {
	title := decisionTitle.FindStringSubmatch(string(f.content))
	if title == nil {
		return []string{`begin it with "# N. Title", an empty line, and "Status: accepted." or "Status: superseded by [ADR N](page.md)."`}
	}
	var problems []string
	name := path.Base(f.name)
	if number := strings.Repeat("0", max(0, 4-len(title[1]))) + title[1] + "-"; !strings.HasPrefix(name, number) {
		problems = append(problems, fmt.Sprintf("it has the number %s: begin its file name with %s", title[1], number))
	}
	if row := fmt.Sprintf("| [%s](%s) | %s |\n", title[1], name, title[2]); !strings.Contains(index, row) {
		problems = append(problems, "docs/adr/README.md has another title, or none: add the row "+strings.TrimSpace(row))
	}
	rest := string(f.content)
	for _, heading := range []string{"## Context", "## Decision", "## Consequences"} {
		var found bool
		if _, rest, found = strings.Cut(rest, "\n"+heading+"\n"); !found {
			return append(problems, "the section "+heading+" is missing, or is not in its place")
		}
	}
	return problems
}

func TestDecisionProblems(t *testing.T) {
	const index = "| [7](0007-a-name.md) | A title |\n"
	const sections = "\n\n## Context\n\nA.\n\n## Decision\n\nB.\n\n## Consequences\n\nC.\n"
	for name, tt := range map[string]struct {
		reason, file, content string
		problems              int
	}{
		"accepted":       {"the form", "0007-a-name.md", "# 7. A title\n\nStatus: accepted." + sections, 0},
		"superseded":     {"by a page", "0007-a-name.md", "# 7. A title\n\nStatus: superseded by [ADR 9](0009-b.md)." + sections, 0},
		"added to":       {"more may follow the status", "0007-a-name.md", "# 7. A title\n\nStatus: accepted. [ADR 9](0009-b.md) adds to it." + sections, 0},
		"more sections":  {"where they are read best", "0007-a-name.md", "# 7. A title\n\nStatus: accepted.\n\n## Context\n\n## Decision\n\n## Figures\n\n## Consequences\n", 0},
		"no status":      {"readers look for it", "0007-a-name.md", "# 7. A title" + sections, 1},
		"another status": {"of another template", "0007-a-name.md", "# 7. A title\n\nStatus: done." + sections, 1},
		"another number": {"links name the number", "0008-a-name.md", "# 7. A title\n\nStatus: accepted." + sections, 2},
		"another title":  {"the index names the page", "0007-a-name.md", "# 7. A name\n\nStatus: accepted." + sections, 1},
		"no context":     {"the decision has a reason", "0007-a-name.md", "# 7. A title\n\nStatus: accepted.\n\n## Decision\n\n## Consequences\n", 1},
		"another order":  {"context first", "0007-a-name.md", "# 7. A title\n\nStatus: accepted.\n\n## Consequences\n\n## Context\n\n## Decision\n", 1},
	} {
		got := decisionProblems(sourceFile{"docs/adr/" + tt.file, []byte(tt.content)}, index)
		if diff := cmp.Diff(tt.problems, len(got)); diff != "" {
			t.Errorf("%s (%s): number of problems (-want +got):\n%s%q", name, tt.reason, diff, got)
		}
	}
}
