// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/rollout"
	"github.com/satchel-dev/satchel/internal/view"
	"github.com/satchel-dev/satchel/internal/view/rollouts"
)

// barWidth is that of the bar of the open wave.
const barWidth = 18

// PrintStatus writes the waves as a tree, and what happens next.
func PrintStatus(s rollouts.Status, style printer.Style, now time.Time, program string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s/%s: %s", v1alpha1.BundleRolloutKind, view.Inline(s.Namespace), style.Paint(printer.Bold, view.Inline(s.Name)), style.Paint(stateColor(s), s.State))
	if s.Started != nil && s.Outcome == rollouts.Moving {
		fmt.Fprintf(&out, ", started %s ago", view.Age(now, *s.Started))
	}
	out.WriteByte('\n')
	nameWidth, countWidth := widths(s.Waves)
	tree := make([]printer.Node, 0, len(s.Waves))
	for i := range s.Waves {
		if s.Waves[i].Total > 0 || s.Waves[i].Name != v1alpha1.WaveUnmatched {
			tree = append(tree, waveNode(&s.Waves[i], style, nameWidth, countWidth, now))
		}
	}
	printer.WriteNodes(&out, tree, "")
	if s.Outcome == rollouts.Standing && s.Message != "" && !s.IsExplained() {
		fmt.Fprintf(&out, "%s %s\n", style.Paint(printer.Yellow, view.Inline(s.Reason)+":"), view.OneLine(s.Message, 0))
	}
	if s.Removal != "" {
		fmt.Fprintf(&out, "%s %s\n", style.Paint(printer.Yellow, "Removal is held:"), view.OneLine(s.Removal, 0))
	}
	if drift := driftText(s); drift != "" {
		fmt.Fprintln(&out, drift)
	}
	fmt.Fprintf(&out, "%s\n", style.Paint(printer.Bold, "What happens next:"))
	for _, line := range s.Next {
		fmt.Fprintf(&out, "  %s\n", view.Printable(line))
	}
	writeActions(&out, s.Actions, program)
	return out.String()
}

// writeActions lists commands below each other.
func writeActions(out *strings.Builder, actions []rollouts.Action, program string) {
	width := 0
	for _, action := range actions {
		width = max(width, len(action.What))
	}
	for _, action := range actions {
		fmt.Fprintf(out, "  %-*s  %s %s\n", width, action.What, program, action.Command)
	}
}

func stateColor(s rollouts.Status) printer.Color {
	switch {
	case s.Outcome == rollouts.Complete:
		return printer.Green
	case s.Reason == v1alpha1.ReasonMaxFailuresExceeded || s.Reason == v1alpha1.ReasonNoClusterSucceeded || s.Reason == v1alpha1.ReasonRevisionRejected:
		return printer.Red
	}
	return printer.Yellow
}

// driftText says on how many clusters drift is corrected.
func driftText(s rollouts.Status) string {
	if s.Clusters == nil || s.Clusters.Total == 0 || s.Outcome == rollouts.Complete {
		return ""
	}
	text := fmt.Sprintf("Drift is corrected on every cluster that can be reached (%d of %d), at the revision that it has", s.Clusters.Total-s.Clusters.Unreachable, s.Clusters.Total)
	if s.Clusters.Held > 0 {
		text += ", unless its BundleDeployment is suspended or the cluster was rebuilt"
	}
	return text + "."
}

func widths(waves []rollouts.Wave) (name, count int) {
	for i := range waves {
		name = max(name, utf8.RuneCountInString(view.Inline(waves[i].Name)))
		count = max(count, len(countText(&waves[i])))
	}
	return name, count
}

func countText(w *rollouts.Wave) string { return fmt.Sprintf("%d/%d", w.Updated, w.Total) }

func waveNode(w *rollouts.Wave, style printer.Style, nameWidth, countWidth int, now time.Time) printer.Node {
	mark := printer.Cell{Text: "·", Color: printer.Faint}
	isOpen := w.State == v1alpha1.WaveOpen || w.State == v1alpha1.WaveSucceeded
	switch {
	case w.State == v1alpha1.WaveComplete:
		mark = printer.Cell{Text: "✓", Color: printer.Green}
	case isOpen && (w.WaitsFor == v1alpha1.ReasonMaxFailuresExceeded || w.WaitsFor == v1alpha1.ReasonNoClusterSucceeded):
		mark = printer.Cell{Text: "✗", Color: printer.Red}
	case isOpen:
		mark = printer.Cell{Text: "…", Color: printer.Yellow}
	}
	name, count := view.Inline(w.Name), countText(w)
	line := style.Paint(mark.Color, mark.Text) + " " + name + printer.Padding(name, nameWidth) + strings.Repeat(" ", countWidth-len(count)) + count
	if isOpen {
		line += "  " + bar(w)
	}
	if w.Detail != "" {
		line += "  " + w.Detail
	}
	n := printer.Node{Text: line}
	for i := range w.Problems {
		n.Below = append(n.Below, printer.Node{Text: problemText(&w.Problems[i], style, now)})
	}
	return n
}

// bar shows how many clusters of a wave are updated, and how many are in flight.
func bar(w *rollouts.Wave) string {
	if w.Total == 0 {
		return strings.Repeat("░", barWidth)
	}
	updated := int(w.Updated) * barWidth / int(w.Total)
	updating := min((int(w.Updating)*barWidth+int(w.Total)-1)/int(w.Total), barWidth-updated)
	return strings.Repeat("█", updated) + strings.Repeat("▒", updating) + strings.Repeat("░", barWidth-updated-updating)
}

func problemText(p *v1alpha1.RolloutClusterProblem, style printer.Style, now time.Time) string {
	mark, color := "✗", printer.Red
	if p.State != string(rollout.Failed) {
		mark, color = "!", printer.Yellow
	}
	text := style.Paint(color, mark) + " " + view.Inline(p.Cluster) + "  " + kit.Dash(view.Inline(p.Reason))
	if p.Message != "" {
		text += "  " + view.OneLine(p.Message, kit.StatusWidth)
	}
	if p.StartTime != nil {
		text += "  (" + view.Age(now, *p.StartTime) + ")"
	}
	return text
}
