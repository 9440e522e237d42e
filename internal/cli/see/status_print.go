// SPDX-License-Identifier: Apache-2.0

package see

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// marks are the signs and colours of the states.
var marks = map[view.StepState]printer.Cell{
	view.StepDone:    {Text: "✓", Color: printer.Green},
	view.StepFailed:  {Text: "✗", Color: printer.Red},
	view.StepWorking: {Text: "…", Color: printer.Yellow},
	view.StepWaiting: {Text: "·", Color: printer.Faint},
}

// PrintPipeline writes the pipeline as a tree for people.
func PrintPipeline(p view.Pipeline, s printer.Style, now time.Time) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s/%s: %s\n", v1alpha1.BundleDeploymentKind, p.Namespace, s.Paint(printer.Bold, p.Name), s.Paint(pipelineColor(p), p.State))
	tree := []printer.Node{sourceLine(p.Source, s, now)}
	width := nameWidth(p)
	for _, step := range p.Steps {
		tree = append(tree, stepLine(p, step, s, width, now))
	}
	printer.WriteNodes(&out, tree, "")
	printer.PrintPendingDecision(p.Approval, &out, s)
	for _, warning := range p.Warnings {
		fmt.Fprintf(&out, "%s %s\n", s.Paint(printer.Yellow, "Warning:"), view.Inline(warning))
		if hint := view.HintForWarning(warning); hint != "" {
			fmt.Fprintf(&out, "  %s %s\n", s.Paint(printer.Bold, "What to do:"), strings.ReplaceAll(wrap(hint, hintWidth), "\n", "\n  "))
		}
	}
	fmt.Fprintf(&out, "%s\n", s.Paint(printer.Bold, "What happens next:"))
	for _, line := range p.Next {
		fmt.Fprintf(&out, "  %s\n", view.Printable(line))
	}
	return out.String()
}

func pipelineColor(p view.Pipeline) printer.Color {
	switch p.Ready {
	case metav1.ConditionTrue:
		return printer.Green
	case metav1.ConditionFalse:
		return printer.Red
	}
	return printer.Yellow
}

func nameWidth(p view.Pipeline) int {
	width := 0
	for _, step := range p.Steps {
		width = max(width, utf8.RuneCountInString(step.Name))
	}
	return width
}

// stepLine is the line of a step; the failed one has its message and what to do.
func stepLine(p view.Pipeline, step view.StepNode, s printer.Style, width int, now time.Time) printer.Node {
	mark := marks[step.State]
	line := s.Paint(mark.Color, mark.Text) + " " + step.Name
	failedHere := p.Problem != nil && p.Problem.Step == step.Name
	var below []printer.Node
	switch {
	case failedHere:
		line += printer.Padding(step.Name, width) + s.Paint(printer.Red, view.Inline(step.Reason)) + since(step, now)
	case step.Name == v1alpha1.ReadyCondition && step.State == view.StepFailed:
		line += printer.Padding(step.Name, width) + view.Inline(step.Reason)
	case step.State == view.StepDone:
		line += printer.Padding(step.Name, width) + view.OneLine(step.Detail, 0)
	case step.State == view.StepFailed:
		line += printer.Padding(step.Name, width) + view.Inline(step.Reason) + ": " + view.OneLine(step.Detail, kit.StatusWidth)
	case step.State == view.StepWorking:
		first, rest, _ := strings.Cut(strings.TrimSpace(view.Printable(step.Detail)), "\n")
		line += printer.Padding(step.Name, width) + first + since(step, now)
		below = lineNodes(rest)
	}
	n := printer.Node{Text: strings.TrimRight(line, " "), Below: below}
	if failedHere {
		n.Below = problemNodes(*p.Problem, s, step.Reason)
	}
	return n
}

// problemNodes are the message, every line of it, and the hint.
func problemNodes(p view.Problem, s printer.Style, shown string) []printer.Node {
	message := strings.TrimSpace(view.Printable(p.Message))
	if p.Reason != shown {
		message = view.Inline(p.Reason) + ": " + message
	}
	lines := lineNodes(message)
	if p.Hint != "" {
		lines = append(lines, printer.Node{Text: s.Paint(printer.Bold, "What to do:") + " " + wrap(p.Hint, hintWidth)})
	}
	return lines
}

// lineNodes are the lines of a text that is printable already.
func lineNodes(text string) []printer.Node {
	if text == "" {
		return nil
	}
	var lines []printer.Node
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, printer.Node{Text: line})
	}
	return lines
}

// hintWidth is where hints are broken; messages stay in one piece, for searching and copying.
const hintWidth = 90

// wrap breaks a text between words, the first line being shorter by a heading.
func wrap(text string, width int) string {
	var out strings.Builder
	column := len("What to do:")
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > width:
			out.WriteByte('\n')
			column = -1
		default:
			out.WriteByte(' ')
		}
		out.WriteString(word)
		column += 1 + len(word)
	}
	return out.String()
}

func since(step view.StepNode, now time.Time) string {
	if step.Since == nil || step.Since.IsZero() {
		return ""
	}
	return ", for " + view.Age(now, *step.Since)
}

// sourceLine is the part of the tree about the source.
func sourceLine(n view.SourceNode, s printer.Style, now time.Time) printer.Node {
	text := "Source " + view.Inline(n.Name)
	if n.Inline {
		text += " (spec.source)"
	}
	if !n.Exists {
		text += ": there is no such BundleSource" + map[bool]string{true: " yet", false: ""}[n.Inline]
	}
	var below []printer.Node
	for _, part := range n.Parts {
		below = append(below, printer.Node{Text: partText(part)})
	}
	switch {
	case n.OriginRevision != "":
		below = append(below, printer.Node{Text: "published " + view.ShortOrigin(view.Inline(n.OriginRevision)) +
			" as revision " + view.ShortRevision(view.Inline(n.Revision)) + published(n.Updated, now)})
	case n.Revision != "":
		below = append(below, printer.Node{Text: "published " + view.ShortRevision(view.Printable(n.Revision)) + published(n.Updated, now)})
	}
	if n.Trouble != "" {
		below = append(below, printer.Node{Text: s.Paint(printer.Yellow, view.OneLine(n.Trouble, 0))})
	}
	return printer.Node{Text: text, Below: below}
}

func published(at *metav1.Time, now time.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	return ", " + view.Age(now, *at) + " ago"
}

func partText(p view.SourcePart) string {
	text := view.ShortRevision(view.Printable(p.From))
	if p.Destination != "" {
		text = view.Inline(p.Destination) + "/ from " + text
	}
	switch {
	case p.Resolved == "":
		return text
	case p.Pinned:
		return text + ", pinned"
	}
	return text + " → " + view.ShortRevision(view.Inline(p.Resolved))
}
