// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// mostListed bounds each list that people are shown.
const mostListed = 100

// page writes a description for people. Whatever comes from the bundle passes through wrapped, title or row.
type page struct {
	out   strings.Builder
	style style
	width int
}

// title begins a list.
func (p *page) title(text string) {
	fmt.Fprintf(&p.out, "\n%s\n", p.style.paint(bold, oneLine(text, 0)+":"))
}

// counted is a title with the number of what follows.
func counted[T any](text string, items []T) string { return fmt.Sprintf("%s (%d)", text, len(items)) }

// wrapped writes a text at a depth of indentation.
func (p *page) wrapped(depth int, text string) {
	indent := strings.Repeat("  ", depth)
	writeWrapped(&p.out, oneLine(text, 0), indent, indent+"    ", p.width)
}

// fact writes a line "Name:  value", if there is a value.
func (p *page) fact(name, value string) {
	if value != "" {
		const column = 21
		writeWrapped(&p.out, oneLine(value, 0), name+":"+strings.Repeat(" ", column-len(name)-1), strings.Repeat(" ", column), p.width)
	}
}

// some returns the items that are shown, and what to say of the others.
func some[T any](items []T) (shown []T, more string) {
	if len(items) <= mostListed {
		return items, ""
	}
	return items[:mostListed], fmt.Sprintf("and %d more; -o json prints all", len(items)-mostListed)
}

// list writes a titled list, an item at a time.
func list[T any](p *page, title string, items []T, write func(T)) {
	if len(items) == 0 {
		return
	}
	p.title(title)
	shown, more := some(items)
	for _, item := range shown {
		write(item)
	}
	if more != "" {
		p.wrapped(1, more)
	}
}

// print writes the description for people.
func (d description) print(s style, width int) string {
	p := &page{style: s, width: width}
	d.printHead(p)
	total := 0
	for _, c := range d.Objects {
		total += c.Count
	}
	list(p, fmt.Sprintf("Objects (%d)", total), d.Objects, func(c kindCount) {
		kind := c.Kind
		if c.Group != "" {
			kind += "." + c.Group
		}
		p.wrapped(1, fmt.Sprintf("%d × %s", c.Count, kind))
	})
	list(p, counted("CustomResourceDefinitions", d.CRDs), d.CRDs, func(c crdSummary) {
		text := fmt.Sprintf("%s: %s, %s, %s", c.Name, c.Kind, strings.ToLower(c.Scope), strings.Join(c.Versions, ", "))
		if !c.Owned {
			text += ", not listed as owned"
		}
		p.wrapped(1, text)
	})
	list(p, counted("Webhooks", d.Webhooks), d.Webhooks, func(w webhookSummary) { w.print(p) })
	list(p, counted("Certificates that the controller issues", d.Certificates), d.Certificates, func(c string) { p.wrapped(1, "Secret "+c) })
	for _, holder := range d.Permissions {
		holder.print(p)
	}
	list(p, counted("Images", d.Images), d.Images, func(i imageUse) {
		p.wrapped(1, i.Image)
		uses, more := some(i.Uses)
		p.wrapped(2, strings.TrimSuffix(strings.Join(uses, ", ")+" "+more, " "))
	})
	list(p, counted("Requires of the cluster", d.Requirements), d.Requirements, func(r string) { p.wrapped(1, r) })
	list(p, counted("Warnings", d.Warnings), d.Warnings, func(w string) { p.wrapped(1, w) })
	return p.out.String()
}

// printHead writes what the bundle is called and where it goes.
func (d description) printHead(p *page) {
	name := d.DisplayName
	if name == "" {
		name = d.Bundle
	}
	fmt.Fprintf(&p.out, "%s\n", p.style.paint(bold, oneLine(name, longestName)))
	if text := firstParagraph(d.Description); text != "" {
		writeWrapped(&p.out, oneLine(text, longestDescription), "  ", "  ", p.width)
	}
	p.out.WriteByte('\n')
	p.fact("Format", d.Format)
	p.fact("Name", d.Name)
	p.fact("Package", strings.TrimSpace(d.Package+" "+d.Version))
	p.fact("Provider", d.Provider)
	p.fact("Channels", channelsText(d.Channels, d.DefaultChannel))
	p.fact("Install modes", strings.Join(d.InstallModes, ", "))
	p.fact("Suggested namespace", d.SuggestedNamespace)
	p.fact("Shown as in", d.InstallNamespace)
}

// Bounds of what is shown of texts, in characters.
const (
	longestName        = 100
	longestDescription = 300
)

// link is one in Markdown; its text is shown.
var link = regexp.MustCompile(`\[([^][]*)\]\([^()]*\)`)

// firstParagraph is the first paragraph of a text in Markdown that is no heading, as one line.
func firstParagraph(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		heading := strings.HasPrefix(line, "#") || strings.Trim(line, "=-") == ""
		switch {
		case !heading:
			lines = append(lines, line)
		case len(lines) > 0:
			return unmarked(lines)
		}
	}
	return unmarked(lines)
}

// unmarked takes links and bold type out.
func unmarked(lines []string) string {
	return strings.ReplaceAll(link.ReplaceAllString(strings.Join(lines, " "), "$1"), "**", "")
}

func channelsText(channels []string, byDefault string) string {
	marked := slices.Clone(channels)
	for i, name := range marked {
		if name == byDefault {
			marked[i] += " (default)"
		}
	}
	text := strings.Join(marked, ", ")
	if byDefault != "" && !slices.Contains(channels, byDefault) {
		text += "; the package's default is " + byDefault
	}
	return text
}

func (w webhookSummary) print(p *page) {
	verb, policy := "intercepts", ", failure policy "+w.FailurePolicy
	if w.FailurePolicy == "" {
		verb, policy = "converts", ""
	}
	p.wrapped(1, fmt.Sprintf("%s %s, served by %s%s", w.Type, w.Name, w.ServedBy, policy))
	rules, more := some(w.Rules)
	for _, r := range rules {
		p.wrapped(2, verb+" "+r)
	}
	if more != "" {
		p.wrapped(2, more)
	}
}

func (h permissionHolder) print(p *page) {
	count := 0
	for _, scope := range h.Scopes {
		count += len(scope.Rules)
	}
	p.title(fmt.Sprintf("Permissions of %s (%d)", h.Account, count))
	for _, scope := range h.Scopes {
		where := "in all namespaces:"
		if scope.Namespace != "" {
			where = "in the namespace " + scope.Namespace + ":"
		}
		p.wrapped(1, where)
		rules, more := some(scope.Rules)
		for _, r := range rules {
			r.print(p)
		}
		if more != "" {
			p.wrapped(2, more)
		}
	}
}

func (r permissionRule) print(p *page) {
	if r.Danger == "" {
		p.wrapped(3, r.Resources+": "+r.Verbs)
		return
	}
	indent := strings.Repeat("  ", 2)
	var line strings.Builder
	writeWrapped(&line, oneLine(r.Resources+": "+r.Verbs+" ("+r.Danger+")", 0), indent+"! ", indent+"    ", p.width)
	p.out.WriteString(p.style.paint(red, strings.TrimSuffix(line.String(), "\n")) + "\n")
}
