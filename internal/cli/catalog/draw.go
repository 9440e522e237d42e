// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/internal/catalog/graph"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

func (d drawing) print(a *kit.App, output printer.Output) error {
	var text string
	switch output {
	case outputMermaid:
		text = d.mermaid()
	case outputDot:
		text = d.dot()
	case printer.OutputText:
		text = d.text()
	default:
		return printer.PrintValue(a.Streams.Out, output, d.value())
	}
	_, err := fmt.Fprint(a.Streams.Out, text)
	return err
}

// onPath tells whether an edge belongs to the upgrades of the controller.
func (d drawing) onPath(e graph.Edge) bool {
	if d.trip == nil {
		return false
	}
	for _, hop := range d.trip.path.Hops {
		if hop.Edge == e {
			return true
		}
	}
	return false
}

func (d drawing) isInstalled(n graph.Node) bool { return d.trip != nil && n.Name == d.trip.from.Bundle }

// label is a node in one line: the name, and the version where the name does not end with it.
func label(n graph.Node) string {
	text := n.Name
	if n.Version != "" && !strings.HasSuffix(n.Name, "v"+n.Version) {
		text += " (" + n.Version + ")"
	}
	if n.Missing {
		text += " (not in the catalog)"
	}
	if n.Deprecated {
		text += " (deprecated)"
	}
	return view.Inline(text)
}

// kindText is how an edge is stated.
func kindText(e graph.Edge) string {
	switch e.Kind {
	case "":
		return "same version"
	case graph.SkipRange:
		return "skipRange " + e.Range
	}
	return string(e.Kind)
}

func (d drawing) text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "Package %s of catalog %s", view.Inline(d.name), d.catalog)
	if len(d.channels) > 0 {
		fmt.Fprintf(&out, ", channels %s", view.Inline(strings.Join(d.channels, ", ")))
	}
	out.WriteString("\n\n")
	for _, n := range d.graph.Nodes {
		fmt.Fprintln(&out, label(n))
		for _, e := range d.graph.From(n.Name) {
			fmt.Fprintf(&out, "  -> %s, %s\n", view.Inline(e.To), view.Inline(kindText(e)))
		}
	}
	if d.trip != nil {
		d.trip.write(&out)
	}
	return out.String()
}

func (t *trip) write(out *strings.Builder) {
	fmt.Fprintf(out, "\nUpgrades from %s%s: %d\n", view.Inline(t.from.Bundle), t.inRange(), len(t.path.Hops))
	writeHops(out, t.path.Hops)
	fmt.Fprintf(out, "End: %s\n", view.Inline(t.endText()))
	for _, line := range t.path.Details {
		fmt.Fprintf(out, "  %s\n", view.Inline(line))
	}
	switch {
	case t.to == nil:
	case !t.possible:
		fmt.Fprintf(out, "\nNo path leads to %s\n", view.Inline(t.to.Name))
	default:
		fmt.Fprintf(out, "\nFewest upgrades to %s: %d\n", view.Inline(t.to.Name), len(t.shortest))
		writeHops(out, t.shortest)
	}
}

func (t *trip) inRange() string {
	if t.versions == "" {
		return ""
	}
	return fmt.Sprintf(" with version %q", t.versions)
}

func writeHops(out *strings.Builder, hops []graph.Hop) {
	for _, hop := range hops {
		fmt.Fprintf(out, "  -> %s, %s\n", view.Inline(hop.Bundle), view.Inline(kindText(hop.Edge)))
	}
}

// endText says where the upgrades end and why.
func (t *trip) endText() string {
	last := t.from.Bundle
	if n := len(t.path.Hops); n > 0 {
		last = t.path.Hops[n-1].Bundle
	}
	switch t.path.End {
	case graph.Reached:
		return last + " is the wanted version"
	case graph.IsNewest:
		return last + " is the newest bundle"
	case graph.NoEdge:
		return "no edge leads on from " + last
	case graph.Held:
		return "nothing better than " + last + " is chosen"
	case graph.Repeats:
		return "upgrades come back to " + last
	}
	return "resolution is refused at " + last
}

// mermaidLabel is text in quotes of Mermaid.
func mermaidLabel(text string) string {
	return `"` + strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;").Replace(view.Inline(text)) + `"`
}

func (d drawing) mermaid() string {
	var out strings.Builder
	out.WriteString("flowchart LR\n")
	ids := map[string]string{}
	for i, n := range d.graph.Nodes {
		ids[n.Name] = fmt.Sprintf("b%d", i)
		fmt.Fprintf(&out, "  b%d[%s]\n", i, mermaidLabel(label(n)))
	}
	for _, e := range d.graph.Edges {
		switch e.Kind {
		case graph.Replaces:
			fmt.Fprintf(&out, "  %s --> %s\n", ids[e.From], ids[e.To])
		case graph.Skips:
			fmt.Fprintf(&out, "  %s -.-> %s\n", ids[e.From], ids[e.To])
		case graph.SkipRange:
			fmt.Fprintf(&out, "  %s -->|%s| %s\n", ids[e.From], mermaidLabel(e.Range), ids[e.To])
		}
	}
	for i, e := range d.graph.Edges {
		var style []string
		if e.Kind == graph.SkipRange {
			style = append(style, "stroke-dasharray:8 4")
		}
		if d.onPath(e) {
			style = append(style, "stroke-width:4px")
		}
		if len(style) > 0 {
			fmt.Fprintf(&out, "  linkStyle %d %s\n", i, strings.Join(style, ","))
		}
	}
	for _, n := range d.graph.Nodes {
		if d.isInstalled(n) {
			fmt.Fprintf(&out, "  style %s font-weight:bold,stroke-width:4px\n", ids[n.Name])
		}
	}
	return out.String()
}

// dotQuoted is text in quotes of Graphviz.
func dotQuoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(view.Inline(text)) + `"`
}

func (d drawing) dot() string {
	var out strings.Builder
	fmt.Fprintf(&out, "digraph %s {\n  rankdir=LR;\n  node [shape=box];\n", dotQuoted(d.name))
	for _, n := range d.graph.Nodes {
		style := ""
		if d.isInstalled(n) {
			style = ", style=bold"
		}
		fmt.Fprintf(&out, "  %s [label=%s%s];\n", dotQuoted(n.Name), dotQuoted(label(n)), style)
	}
	styles := map[graph.Kind]string{graph.Replaces: "solid", graph.Skips: "dotted", graph.SkipRange: "dashed"}
	for _, e := range d.graph.Edges {
		further := ""
		if e.Kind == graph.SkipRange {
			further = ", label=" + dotQuoted(e.Range)
		}
		if d.onPath(e) {
			further += ", penwidth=3"
		}
		fmt.Fprintf(&out, "  %s -> %s [style=%s%s];\n", dotQuoted(e.From), dotQuoted(e.To), styles[e.Kind], further)
	}
	out.WriteString("}\n")
	return out.String()
}
