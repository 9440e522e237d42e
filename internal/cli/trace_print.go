// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"time"
)

// print writes the trace for people: from the object up.
func (t traced) print(s style, now time.Time) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", s.paint(bold, inline(t.Object.id().String())))
	var lines []node
	for _, owner := range t.Owners {
		lines = append(lines, node{text: "owned by " + inline(owner.id().String())})
	}
	if t.Deployment == nil {
		lines = append(lines, node{text: s.paint(red, "not installed by a BundleDeployment: ") + bounded(t.Explanation)})
	} else {
		lines = append(lines, t.Deployment.node(s, now, t.Explanation))
	}
	if t.Source != nil {
		lines = append(lines, t.Source.node(s))
	}
	writeNodes(&out, lines, "")
	for _, note := range t.Notes {
		fmt.Fprintf(&out, "%s %s\n", s.paint(yellow, "Note:"), bounded(note))
	}
	return out.String()
}

func (d *traceDeployment) node(s style, now time.Time, why string) node {
	n := node{text: "installed by BundleDeployment " + s.paint(bold, inline(d.Namespace+"/"+d.Name)) + ": " + s.paint(d.color, d.state)}
	add := func(name, text string) {
		if text != "" {
			n.below = append(n.below, node{text: fmt.Sprintf("%-9s %s", name, inline(text))})
		}
	}
	add("because", why)
	add("revision", d.Revision)
	add("artifact", d.Digest)
	add("package", packageText(d.Package))
	if d.Applied != nil {
		add("applied", age(now, *d.Applied)+" ago")
	}
	add("account", "ServiceAccount "+d.Account)
	return n
}

func (f *traceSource) node(s style) node {
	n := node{text: fmt.Sprintf("from %s %s", inline(f.Kind), s.paint(bold, inline(f.Namespace+"/"+f.Name)))}
	for _, up := range f.Upstreams {
		text := inline(up.From)
		if up.Destination != "" {
			text = inline(up.Destination) + "/ from " + text
		}
		n.below = append(n.below, node{text: text, below: up.nodes(s)})
	}
	return n
}

// nodes are the lines about what was fetched.
func (up traceUpstream) nodes(s style) []node {
	if up.Digest == "" {
		return nil // not known any more
	}
	var lines []node
	digest := up.Digest
	if up.Reference != "" {
		digest = up.Reference + " → " + digest
	}
	lines = append(lines, node{text: "upstream  " + inline(digest)})
	switch {
	case up.Signer != "":
		lines = append(lines, node{text: "signer    " + s.paint(green, inline(up.Signer))})
	case up.Demanded:
		lines = append(lines, node{text: "signer    " + s.paint(yellow, "the source requires a signature now; the signer of the applied revision is unknown")})
	default:
		lines = append(lines, node{text: "signer    none: the source requires no signature"})
	}
	return lines
}
