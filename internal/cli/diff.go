// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/apply/plan/fields"
)

func (a *app) diffCommand() *cobra.Command {
	var o previewOptions
	cmd := &cobra.Command{
		Use:     "diff NAME",
		GroupID: groupPreview,
		Short:   "Show what the controller would change in the objects of a BundleDeployment, as a unified diff",
		Long: `Compares the objects on the cluster with the result of a dry run on the API server, and writes the differences as a
unified diff; the command plan shows more. Like plan it changes nothing, and uses your own permissions.

Fields that only an API server writes, such as status, are left out. Values of Secrets are hidden on both sides, and so
are annotations in which tools keep a copy of the whole object; that they differ is shown.

--ignore-snippet prints what to write under spec.driftDetection for the fields of objects that the deployment applied
before and that differ now, so that drift of these fields is ignored.

` + previewExitCodes,
		Example: a.example(`
# What has drifted, or what would the new revision change?
satchel diff podinfo -n demo

# What would this folder change?
satchel diff podinfo --path ./bundle

# Go back: what would the revision before change?
satchel diff podinfo --revision previous

# Ignore the drift of today
satchel diff podinfo --ignore-snippet`),
		ValidArgsFunction: a.completeOne(deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := previewed(cmd, args, o)
			if err != nil {
				return err
			}
			if o.ignoreSnippet && o.output != outputText {
				return usageError(cmd, "--ignore-snippet is YAML by itself: leave -o out")
			}
			return a.diff(cmd.Context(), o, t)
		},
	}
	a.outputFlag(cmd, &o.output, outputText, outputJSON, outputYAML)
	cmd.Flags().BoolVar(&o.ignoreSnippet, "ignore-snippet", false, "Print the rules for spec.driftDetection.ignore that would leave the differences alone.")
	a.previewFlags(cmd, &o)
	return cmd
}

func (a *app) diff(ctx context.Context, o previewOptions, t target) error {
	v, err := a.preview(ctx, o, t)
	if err != nil {
		return err
	}
	switch {
	case o.ignoreSnippet:
		err = a.printSnippet(v)
	case o.output == outputText:
		err = a.printDiff(v)
	default:
		err = printValue(a.streams.Out, o.output, differences(v))
	}
	if err == nil && v.changes() {
		return errNo
	}
	return err
}

// objectDiff is what diff -o json prints of an object.
type objectDiff struct {
	objectPreview `json:",inline"`

	Diff string `json:"diff,omitempty"`
}

func differences(v *preview) []objectDiff {
	list := make([]objectDiff, 0, len(v.Objects))
	for _, o := range v.Objects {
		list = append(list, objectDiff{objectPreview: o, Diff: o.unified()})
	}
	return list
}

// printDiff writes the differences; what is no part of a diff goes to standard error.
func (a *app) printDiff(v *preview) error {
	s := styleFor(a.streams.Out)
	for _, o := range v.Objects {
		if _, err := fmt.Fprint(a.streams.Out, colored(o.unified(), s)); err != nil {
			return fmt.Errorf("writing the differences: %w", err)
		}
		for _, said := range []string{o.Unknown, o.Failed, o.Contested} {
			if said != "" {
				a.note([]string{o.title() + ": " + said})
			}
		}
	}
	for _, violation := range v.Violations {
		a.note([]string{"refused: " + violation.String()})
	}
	if v.Held != "" {
		a.note([]string{v.Held})
	}
	a.note(v.notes())
	return nil
}

// colored paints the lines of a diff.
func colored(text string, s style) string {
	if !s.enabled {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		bare, end := strings.TrimSuffix(line, "\n"), line[len(strings.TrimSuffix(line, "\n")):]
		paint := plain
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			paint = bold
		case strings.HasPrefix(line, "@@"):
			paint = faint
		case strings.HasPrefix(line, "-"):
			paint = red
		case strings.HasPrefix(line, "+"):
			paint = green
		}
		out.WriteString(s.paint(paint, bare) + end)
	}
	return out.String()
}

// contextLines is how many equal lines stand around each difference.
const contextLines = 3

// unified is the object before and after as a unified diff; empty where neither is known or nothing differs.
func (o objectPreview) unified() string {
	if o.Verb == verbRelease {
		return ""
	}
	before, after := fields.Sides(o.before, o.after)
	if o.approximate { // the defaults of the API server would seem to go
		after = overlaid(before, after)
	}
	was, will := linesOf(before, after)
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: was, B: will, Context: contextLines,
		FromFile: "live/" + inline(o.title()), ToFile: "planned/" + inline(o.title()),
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
	return err == nil && isPlainJSON(encoded)
}

func yamlLines(value map[string]any, quoted bool) []string {
	if value == nil {
		return nil
	}
	text, err := yamlText(value)
	if encoded, failed := json.Marshal(value); quoted && failed == nil {
		text, err = quotedYAML(encoded)
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
