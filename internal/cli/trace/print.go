// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"strings"
	"time"

	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// Print writes the trace for people: from the object up.
func (t Traced) Print(s printer.Style, now time.Time) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", s.Paint(printer.Bold, view.Inline(t.Object.ID().String())))
	var lines []printer.Node
	for _, owner := range t.Owners {
		lines = append(lines, printer.Node{Text: "owned by " + view.Inline(owner.ID().String())})
	}
	if t.Deployment == nil {
		lines = append(lines, printer.Node{Text: s.Paint(printer.Red, "not installed by a BundleDeployment: ") + view.Bounded(t.Explanation)})
	} else {
		lines = append(lines, t.Deployment.node(s, now, t.Explanation))
	}
	if t.Source != nil {
		lines = append(lines, t.Source.node(s))
	}
	if t.Delivery != nil {
		lines = append(lines, t.Delivery.node(s))
	}
	printer.WriteNodes(&out, lines, "")
	for _, note := range t.Notes {
		fmt.Fprintf(&out, "%s %s\n", s.Paint(printer.Yellow, "Note:"), view.Bounded(note))
	}
	return out.String()
}

func (d *Deployment) node(s printer.Style, now time.Time, why string) printer.Node {
	n := printer.Node{Text: "installed by BundleDeployment " + s.Paint(printer.Bold, view.Inline(d.Namespace+"/"+d.Name)) + ": " + s.Paint(d.color, d.state)}
	add := func(name, text string) {
		if text != "" {
			n.Below = append(n.Below, printer.Node{Text: fmt.Sprintf("%-9s %s", name, view.Inline(text))})
		}
	}
	add("because", why)
	add("version", d.Version)
	add("origin", d.Origin)
	add("revision", d.Revision)
	add("artifact", d.Digest)
	add("bundle", d.bundle)
	add("package", view.PackageText(d.Package))
	if d.Applied != nil {
		add("applied", view.Age(now, *d.Applied)+" ago")
	}
	add("account", "ServiceAccount "+d.Account)
	return n
}

func (f *Source) node(s printer.Style) printer.Node {
	n := printer.Node{Text: fmt.Sprintf("from %s %s", view.Inline(f.Kind), s.Paint(printer.Bold, view.Inline(f.Namespace+"/"+f.Name))) + suspendedText(s, f.Suspended)}
	for _, up := range f.Upstreams {
		text := view.Inline(up.From)
		if up.Destination != "" {
			text = view.Inline(up.Destination) + "/ from " + text
		}
		n.Below = append(n.Below, printer.Node{Text: text, Below: up.nodes(s)})
	}
	return n
}

// suspendedText says that nothing newer comes from there.
func suspendedText(s printer.Style, suspended bool) string {
	if !suspended {
		return ""
	}
	return ": " + s.Paint(printer.Yellow, "suspended, so nothing newer is taken")
}

func (f *Delivery) node(s printer.Style) printer.Node {
	n := printer.Node{Text: fmt.Sprintf("delivered by %s %s", view.Inline(f.Kind), s.Paint(printer.Bold, view.Inline(f.Namespace+"/"+f.Name)))}
	switch {
	case f.Suspended:
		n.Text += suspendedText(s, true)
	case f.State != "":
		n.Text += ": " + view.Inline(f.State)
	}
	if f.Revision != "" {
		n.Below = append(n.Below, printer.Node{Text: "revision  " + view.Inline(f.Revision)})
	}
	if f.From != nil {
		n.Below = append(n.Below, f.From.node(s))
	}
	return n
}

func (f *Origin) node(s printer.Style) printer.Node {
	text := "from     "
	if f.Kind != "" {
		text += " " + view.Inline(f.Kind+" "+f.Namespace+"/"+f.Name) + suspendedText(s, f.Suspended)
	}
	if f.URL != "" {
		text += " " + view.Inline(f.URL)
	}
	if f.Path != "" {
		text += " (" + view.Inline(f.Path) + ")"
	}
	return printer.Node{Text: text}
}

// nodes are the lines about what was fetched.
func (up Upstream) nodes(s printer.Style) []printer.Node {
	if up.Digest == "" {
		return nil // not known any more
	}
	var lines []printer.Node
	digest := up.Digest
	if up.Reference != "" {
		digest = up.Reference + " → " + digest
	}
	lines = append(lines, printer.Node{Text: "upstream  " + view.Inline(digest)})
	switch {
	case up.Signer != "":
		lines = append(lines, printer.Node{Text: "signer    " + s.Paint(printer.Green, view.Inline(up.Signer))})
	case up.Demanded:
		lines = append(lines, printer.Node{Text: "signer    " + s.Paint(printer.Yellow, "the source requires a signature now; the signer of the applied revision is unknown")})
	default:
		lines = append(lines, printer.Node{Text: "signer    none: the source requires no signature"})
	}
	return lines
}
