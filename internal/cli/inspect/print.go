// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// page writes a description for people. Whatever comes from the bundle passes through title, wrapped, marked or fact.
type page struct {
	out   strings.Builder
	style printer.Style
	width int
}

// title begins a list.
func (p *page) title(text string) {
	fmt.Fprintf(&p.out, "\n%s\n", p.style.Paint(printer.Bold, view.Bounded(text)+":"))
}

// counted is a title with the number of what follows.
func counted[T any](text string, items []T) string { return fmt.Sprintf("%s (%d)", text, len(items)) }

// wrapped writes a text at a depth of indentation.
func (p *page) wrapped(depth int, text string) {
	indent := strings.Repeat("  ", depth)
	printer.WriteWrapped(&p.out, view.Bounded(text), indent, indent+"    ", p.width)
}

// marked writes a dangerous item after the reason, so that the item cannot hide the reason.
func (p *page) marked(depth int, reason, text string) {
	indent := strings.Repeat("  ", depth)
	var line strings.Builder
	printer.WriteWrapped(&line, view.Bounded(reason+" — "+text), indent+"! ", indent+"      ", p.width)
	p.out.WriteString(p.style.Paint(printer.Red, strings.TrimSuffix(line.String(), "\n")) + "\n")
}

// maybeMarked writes an item, marked if there is a reason.
func (p *page) maybeMarked(depth int, reason, text string) {
	if reason != "" {
		p.marked(depth, reason, text)
		return
	}
	p.wrapped(depth+1, text)
}

// fact writes a line "Name:  value", if there is a value.
func (p *page) fact(name, value string) {
	if value != "" {
		const column = 21
		printer.WriteWrapped(&p.out, view.Bounded(value), name+":"+strings.Repeat(" ", column-len(name)-1), strings.Repeat(" ", column), p.width)
	}
}

// some returns the items that are shown, and what to say of the others.
func some[T any](items []T) (shown []T, more string) {
	if len(items) <= kit.MostListed {
		return items, ""
	}
	return items[:kit.MostListed], fmt.Sprintf("and %d more; -o json prints all", len(items)-kit.MostListed)
}

// someMarked is some for a list that begins with the items that are marked.
func someMarked[T any](items []T, isMarked func(T) bool) (shown []T, more string) {
	if shown, more = some(items); more == "" {
		return shown, more
	}
	hidden, marked := items[kit.MostListed:], 0
	for _, item := range hidden {
		if isMarked(item) {
			marked++
		}
	}
	if marked == 0 {
		return shown, fmt.Sprintf("and %d more, none of them marked, because marked ones come first; -o json prints all", len(hidden))
	}
	return shown, fmt.Sprintf("and %d more, %d OF THEM MARKED; -o json prints all", len(hidden), marked)
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
	p.rest(1, more)
}

// Print writes the description for people.
func (d Description) Print(s printer.Style, width int) string {
	p := &page{style: s, width: width}
	d.printHead(p)
	total := 0
	for _, c := range d.Objects {
		total += c.Count
	}
	list(p, fmt.Sprintf("Objects (%d)", total), d.Objects, func(c KindCount) {
		kind := c.Kind
		if c.Group != "" {
			kind += "." + c.Group
		}
		p.wrapped(1, fmt.Sprintf("%d × %s", c.Count, kind))
	})
	list(p, counted("CustomResourceDefinitions", d.CRDs), d.CRDs, func(c CrdSummary) {
		text := fmt.Sprintf("%s: %s, %s, %s", c.Name, c.Kind, strings.ToLower(c.Scope), strings.Join(c.Versions, ", "))
		if !c.Owned {
			text += ", not listed as owned"
		}
		p.wrapped(1, text)
	})
	d.printWebhooks(p)
	list(p, counted("Certificates that the controller issues", d.Certificates), d.Certificates, func(c string) { p.wrapped(1, "Secret "+c) })
	if len(d.Certificates) > 0 {
		p.wrapped(1, "and "+authorityText())
	}
	d.printPermissions(p)
	list(p, counted("Images", d.Images), d.Images, func(i ImageUse) {
		p.wrapped(1, i.Image)
		uses, more := some(i.Uses)
		p.wrapped(2, strings.TrimSuffix(strings.Join(uses, ", ")+" "+more, " "))
	})
	if d.Chart != nil {
		list(p, counted("Hooks", d.Chart.Hooks), d.Chart.Hooks, func(h hookSummary) { p.wrapped(1, h.String()) })
	}
	list(p, counted("Requires of the cluster", d.Requirements), d.Requirements, func(r string) { p.wrapped(1, r) })
	list(p, counted("Warnings", d.Warnings), d.Warnings, func(w string) { p.wrapped(1, w) })
	return p.out.String()
}

// printHead writes what the bundle is called and where it goes.
func (d Description) printHead(p *page) {
	name := d.DisplayName
	if name == "" {
		name = d.Bundle
	}
	fmt.Fprintf(&p.out, "%s\n", p.style.Paint(printer.Bold, view.OneLine(view.Inline(name), longestName)))
	if text := FirstParagraph(d.Description); text != "" {
		printer.WriteWrapped(&p.out, view.OneLine(view.Inline(text), longestDescription), "  ", "  ", p.width)
	}
	p.out.WriteByte('\n')
	p.fact("Format", d.Format)
	p.fact("Name", d.Name)
	p.fact("Package", strings.TrimSpace(d.Package+" "+d.Version))
	d.Chart.printHead(p)
	p.fact("Provider", d.Provider)
	p.fact("Channels", channelsText(d.Channels, d.DefaultChannel))
	p.fact("Install modes", strings.Join(d.InstallModes, ", "))
	p.fact("Suggested namespace", d.SuggestedNamespace)
	p.fact("As installed in", d.installed())
}

// installed says where the operator is shown to run, what it watches, and who chose that.
func (d Description) installed() string {
	text := bundle.InstalledIn(d.InstallNamespace, d.WatchNamespaces)
	switch {
	case !d.assumed:
		return text
	case d.InstallNamespace == d.SuggestedNamespace:
		return text + " (as the bundle suggests; choose with --install-namespace)"
	}
	return text + " (an example; choose with --install-namespace)"
}

// Bounds of what is shown of texts, in characters.
const (
	longestName        = 100
	longestDescription = 300
)

// link is one in Markdown; its text is shown.
var link = regexp.MustCompile(`\[([^][]*)\]\([^()]*\)`)

// FirstParagraph is the first paragraph of a text in Markdown that is no heading, as one line.
func FirstParagraph(text string) string {
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

func (d Description) printWebhooks(p *page) {
	if len(d.Webhooks) == 0 {
		return
	}
	p.title(counted("Webhooks", d.Webhooks))
	shown, more := someMarked(d.Webhooks, func(w WebhookSummary) bool { return w.Danger != "" })
	for _, w := range shown {
		w.print(p)
	}
	p.rest(1, more)
}

func (w WebhookSummary) print(p *page) {
	verb, policy := "intercepts", ", failure policy "+w.FailurePolicy
	if w.FailurePolicy == "" {
		verb, policy = "converts", ""
	}
	p.maybeMarked(0, w.Danger, fmt.Sprintf("%s %s, served by %s%s", w.Type, w.Name, w.ServedBy, policy))
	rules, more := some(w.Rules)
	for _, r := range rules {
		p.wrapped(2, verb+" "+r)
	}
	p.rest(2, more)
}

// rest says what a list does not show, if there is something.
func (p *page) rest(depth int, more string) {
	if more != "" {
		p.wrapped(depth, more)
	}
}

func (d Description) printPermissions(p *page) {
	shown, more := someMarked(d.Permissions, func(h PermissionHolder) bool { return h.Rank() > view.Unknown })
	for _, holder := range shown {
		printHolder(holder, p)
	}
	if more != "" {
		p.title("Permissions of other subjects")
		p.wrapped(1, more)
	}
}

func printHolder(h PermissionHolder, p *page) {
	count := 0
	for _, scope := range h.Scopes {
		count += len(scope.Rules)
	}
	p.title(fmt.Sprintf("Permissions of %s (%d)", h.Account, count))
	scopes, more := someMarked(h.Scopes, func(s Permission) bool { return s.Rank() > view.Unknown })
	for _, scope := range scopes {
		where := "in all namespaces:"
		if scope.Namespace != "" {
			where = "in the namespace " + view.Word(scope.Namespace) + ":"
		}
		p.wrapped(1, where)
		rules, more := someMarked(scope.Rules, func(r PermissionRule) bool { return r.Danger != "" })
		for _, r := range rules {
			p.maybeMarked(2, r.Danger, r.Resources+": "+r.Verbs)
		}
		p.rest(3, more)
	}
	p.rest(1, more)
}
