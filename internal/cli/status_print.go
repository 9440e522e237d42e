// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// marks are the signs and colours of the states.
var marks = map[stepState]cell{
	stepDone:    {"✓", green},
	stepFailed:  {"✗", red},
	stepWorking: {"…", yellow},
	stepWaiting: {"·", faint},
}

// node is a line of a tree with further lines below it.
type node struct {
	text  string
	below []node
}

// print writes the pipeline as a tree for people.
func (p pipeline) print(s style, now time.Time) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s/%s: %s\n", v1alpha1.BundleDeploymentKind, p.Namespace, s.paint(bold, p.Name), s.paint(p.color(), p.State))
	tree := []node{p.Source.node(s, now)}
	width := p.nameWidth()
	for _, step := range p.Steps {
		tree = append(tree, p.stepNode(step, s, width, now))
	}
	writeNodes(&out, tree, "")
	p.Approval.print(&out, s)
	for _, warning := range p.Warnings {
		fmt.Fprintf(&out, "%s %s\n", s.paint(yellow, "Warning:"), inline(warning))
		if hint := hintForWarning(warning); hint != "" {
			fmt.Fprintf(&out, "  %s %s\n", s.paint(bold, "What to do:"), strings.ReplaceAll(wrap(hint, hintWidth), "\n", "\n  "))
		}
	}
	fmt.Fprintf(&out, "%s\n", s.paint(bold, "What happens next:"))
	for _, line := range p.Next {
		fmt.Fprintf(&out, "  %s\n", printable(line))
	}
	return out.String()
}

func (p pipeline) color() color {
	switch p.Ready {
	case metav1.ConditionTrue:
		return green
	case metav1.ConditionFalse:
		return red
	}
	return yellow
}

func (p pipeline) nameWidth() int {
	width := 0
	for _, step := range p.Steps {
		width = max(width, utf8.RuneCountInString(step.Name))
	}
	return width
}

// stepNode is the line of a step; the failed one has its message and what to do.
func (p pipeline) stepNode(step stepNode, s style, width int, now time.Time) node {
	mark := marks[step.State]
	line := s.paint(mark.color, mark.text) + " " + step.Name
	failedHere := p.Problem != nil && p.Problem.Step == step.Name
	var below []node
	switch {
	case failedHere:
		line += padding(step.Name, width) + s.paint(red, inline(step.Reason)) + since(step, now)
	case step.Name == v1alpha1.ReadyCondition && step.State == stepFailed:
		line += padding(step.Name, width) + inline(step.Reason)
	case step.State == stepDone:
		line += padding(step.Name, width) + oneLine(step.Detail, 0)
	case step.State == stepFailed:
		line += padding(step.Name, width) + inline(step.Reason) + ": " + oneLine(step.Detail, statusWidth)
	case step.State == stepWorking:
		first, rest, _ := strings.Cut(strings.TrimSpace(printable(step.Detail)), "\n")
		line += padding(step.Name, width) + first + since(step, now)
		below = lineNodes(rest)
	}
	n := node{text: strings.TrimRight(line, " "), below: below}
	if failedHere {
		n.below = p.Problem.nodes(s, step.Reason)
	}
	return n
}

// nodes are the message, every line of it, and the hint.
func (p problem) nodes(s style, shown string) []node {
	message := strings.TrimSpace(printable(p.Message))
	if p.Reason != shown {
		message = inline(p.Reason) + ": " + message
	}
	lines := lineNodes(message)
	if p.Hint != "" {
		lines = append(lines, node{text: s.paint(bold, "What to do:") + " " + wrap(p.Hint, hintWidth)})
	}
	return lines
}

// lineNodes are the lines of a text that is printable already.
func lineNodes(text string) []node {
	if text == "" {
		return nil
	}
	var lines []node
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, node{text: line})
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

func padding(name string, width int) string {
	return strings.Repeat(" ", width-utf8.RuneCountInString(name)+2)
}

func since(step stepNode, now time.Time) string {
	if step.Since == nil || step.Since.IsZero() {
		return ""
	}
	return ", for " + age(now, *step.Since)
}

// node is the part of the tree about the source.
func (n sourceNode) node(s style, now time.Time) node {
	text := "Source " + inline(n.Name)
	if n.Inline {
		text += " (spec.source)"
	}
	if !n.Exists {
		text += ": there is no such BundleSource" + map[bool]string{true: " yet", false: ""}[n.Inline]
	}
	var below []node
	for _, part := range n.Parts {
		below = append(below, node{text: part.text()})
	}
	if n.Revision != "" {
		below = append(below, node{text: "published " + shortRevision(printable(n.Revision)) + published(n.Updated, now)})
	}
	if n.Trouble != "" {
		below = append(below, node{text: s.paint(yellow, oneLine(n.Trouble, 0))})
	}
	return node{text: text, below: below}
}

func published(at *metav1.Time, now time.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	return ", " + age(now, *at) + " ago"
}

func (p sourcePart) text() string {
	text := shortRevision(printable(p.From))
	if p.Destination != "" {
		text = inline(p.Destination) + "/ from " + text
	}
	switch {
	case p.Resolved == "":
		return text
	case p.Pinned:
		return text + ", pinned"
	}
	return text + " → " + shortRevision(inline(p.Resolved))
}

// writeNodes draws a tree.
func writeNodes(out *strings.Builder, nodes []node, indent string) {
	for i, n := range nodes {
		branch, further := "├─ ", "│  "
		if i == len(nodes)-1 {
			branch, further = "└─ ", "   "
		}
		stem := "\n" + indent + further
		if len(n.below) > 0 {
			stem += "│  "
		}
		fmt.Fprintf(out, "%s%s%s\n", indent, branch, strings.ReplaceAll(n.text, "\n", stem))
		writeNodes(out, n.below, indent+further)
	}
}
