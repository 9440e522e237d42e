// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/satchel-dev/satchel/internal/apply/plan/fields"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// printDiff writes the differences; what is no part of a diff goes to standard error.
func printDiff(a *kit.App, v *Preview) error {
	s := printer.StyleFor(a.Streams.Out)
	for _, o := range v.Objects {
		if _, err := fmt.Fprint(a.Streams.Out, colored(o.Unified(), s)); err != nil {
			return fmt.Errorf("writing the differences: %w", err)
		}
		for _, said := range append([]string{o.Unknown, o.Failed, o.Contested}, o.Notes...) {
			if said != "" {
				a.Note([]string{o.title() + ": " + said})
			}
		}
	}
	for _, violation := range v.Violations {
		a.Note([]string{"refused: " + violation.String()})
	}
	if v.Held != "" {
		a.Note([]string{v.Held})
	}
	a.Note(v.notes())
	return nil
}

// colored paints the lines of a diff.
func colored(text string, s printer.Style) string {
	if !s.Enabled {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		bare, end := strings.TrimSuffix(line, "\n"), line[len(strings.TrimSuffix(line, "\n")):]
		paint := printer.Plain
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			paint = printer.Bold
		case strings.HasPrefix(line, "@@"):
			paint = printer.Faint
		case strings.HasPrefix(line, "-"):
			paint = printer.Red
		case strings.HasPrefix(line, "+"):
			paint = printer.Green
		}
		out.WriteString(s.Paint(paint, bare) + end)
	}
	return out.String()
}

// contextLines is how many equal lines stand around each difference.
const contextLines = 3

// Unified is the object before and after as a unified diff; empty where neither is known or nothing differs.
func (o ObjectPreview) Unified() string {
	if o.Verb == VerbRelease {
		return ""
	}
	before, after := fields.Sides(o.Before, o.After)
	if o.approximate { // the defaults of the API server would seem to go
		after = overlaid(before, after)
	}
	was, will := linesOf(before, after)
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: was, B: will, Context: contextLines,
		FromFile: "live/" + view.Inline(o.title()), ToFile: "planned/" + view.Inline(o.title()),
	})
	if err != nil {
		return ""
	}
	return text
}

// linesOf are two values as lines of YAML, in which strings look the same on both sides: if one of them has to be escaped,
// all are quoted.
func linesOf(before, after map[string]any) (was, will []string) {
	quoted := !isPlainYAML(before) || !isPlainYAML(after)
	return yamlLines(before, quoted), yamlLines(after, quoted)
}

func isPlainYAML(value map[string]any) bool {
	encoded, err := json.Marshal(value)
	return err == nil && printer.IsPlainJSON(encoded)
}

func yamlLines(value map[string]any, quoted bool) []string {
	if value == nil {
		return nil
	}
	text, err := printer.YamlText(value)
	if encoded, failed := json.Marshal(value); quoted && failed == nil {
		text, err = printer.QuotedYAML(encoded)
	}
	if err != nil {
		return []string{"# it cannot be written as YAML\n"}
	}
	return difflib.SplitLines(strings.TrimSuffix(string(text), "\n"))
}

// overlaid is the live value merged with the desired one. Lists are replaced as a whole.
func overlaid(live, desired map[string]any) map[string]any {
	if live == nil {
		return desired
	}
	result := make(map[string]any, len(live))
	for name, value := range live {
		result[name] = value
	}
	for name, value := range desired {
		was, nested := live[name].(map[string]any)
		will, both := value.(map[string]any)
		if nested && both {
			value = overlaid(was, will)
		}
		result[name] = value
	}
	return result
}
