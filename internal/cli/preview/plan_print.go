// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/fields"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
	"github.com/satchel-dev/satchel/internal/visible"
)

// verbMarks are the signs, words and colours of the changes of objects.
var verbMarks = map[string]struct {
	sign, word string
	color      printer.Color
}{
	string(plan.Create):   {"+", "create", printer.Green},
	string(plan.Repair):   {"+", "create again", printer.Green},
	string(plan.Update):   {"~", "update", printer.Yellow},
	string(plan.Adopt):    {"<", "adopt", printer.Yellow},
	string(plan.Recreate): {"±", "recreate", printer.Red},
	string(plan.Wait):     {"…", "wait for", printer.Yellow},
	VerbDelete:            {"-", "delete", printer.Red},
	VerbRelease:           {">", "release", printer.Yellow},
}

// planText writes a preview for people.
type planText struct {
	strings.Builder

	style printer.Style
	wide  bool
}

// Print is the preview for people; name is that of the program.
func (v *Preview) Print(s printer.Style, name string, wide bool) string {
	t := &planText{style: s, wide: wide}
	fmt.Fprintf(t, "%s %s/%s: %s\n", v1alpha1.BundleDeploymentKind, view.Inline(v.Namespace), s.Paint(printer.Bold, view.Inline(v.Name)), view.Inline(v.Summary))
	if v.Applied != "" {
		fmt.Fprintf(t, "Current: %s\n", view.ShortRevision(view.Inline(v.Applied)))
	}
	t.objects(v)
	t.list("Hooks, each run once:", hookLines(v.Hooks), printer.Plain)
	t.impact(v.Impact)
	t.list("Refused, so nothing would be changed:", texts(v.Violations), printer.Red)
	if v.Held != "" {
		t.list("Held:", []string{v.Held}, printer.Yellow)
	}
	t.list(fmt.Sprintf("ServiceAccount %s lacks permissions:", v.Account.Name), texts(v.Account.Missing), printer.Red)
	t.list("Kept as they are on the cluster, because this is an earlier revision:", v.Kept, printer.Yellow)
	t.list("Left out while the cluster does not serve their kinds:", v.Skipped, printer.Plain)
	t.list("Issued by the controller, and not shown:", v.Certificates, printer.Plain)
	t.digests(v, name)
	for _, warning := range v.Warnings {
		fmt.Fprintf(t, "%s %s\n", s.Paint(printer.Yellow, "Warning:"), view.Bounded(warning))
	}
	for _, note := range v.notes() {
		fmt.Fprintf(t, "%s %s\n", s.Paint(printer.Bold, "Note:"), view.Bounded(note))
	}
	t.WriteString(GrantsText(v.Account, s, name, v.Namespace, v.Name))
	return t.String()
}

// notes are those of the preview, and that about the ServiceAccount.
func (v *Preview) notes() []string {
	notes := slices.Clone(v.Notes)
	if why := v.Account.Unchecked; why != "" {
		notes = append(notes, fmt.Sprintf("the permissions of ServiceAccount %s were not checked: %s", v.Account.Name, why))
	}
	return notes
}

func texts(violations []ViolationPreview) []string {
	list := make([]string, 0, len(violations))
	for _, v := range violations {
		list = append(list, v.String())
	}
	return list
}

// list writes lines below a heading; nothing when there are none.
func (t *planText) list(heading string, lines []string, c printer.Color) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(t, "\n%s\n", t.style.Paint(printer.Bold, view.Inline(heading)))
	for _, line := range lines {
		fmt.Fprintf(t, "  %s\n", t.style.Paint(c, view.Bounded(line)))
	}
}

func (t *planText) objects(v *Preview) {
	if len(v.Objects) > 0 {
		t.WriteString("\n")
	}
	width := 0
	for _, o := range v.Objects {
		width = max(width, utf8.RuneCountInString(verbMarks[o.Verb].word))
	}
	for _, o := range v.Objects {
		mark := verbMarks[o.Verb]
		fmt.Fprintf(t, "  %s%s%s%s\n", t.style.Paint(mark.color, mark.sign+" "+mark.word), printer.Padding(mark.word, width), view.Inline(o.title()), o.detail())
		if o.Failed != "" {
			fmt.Fprintf(t, "      %s\n", t.style.Paint(printer.Red, view.Bounded("the API server refuses it: "+o.Failed)))
		}
		if o.Contested != "" {
			fmt.Fprintf(t, "      %s\n", t.style.Paint(printer.Yellow, view.Bounded(o.Contested)))
		}
		for _, note := range o.Notes {
			fmt.Fprintf(t, "      %s\n", t.style.Paint(printer.Yellow, view.Bounded(note)))
		}
		if t.wide {
			t.fields(o)
		}
	}
}

// detail says in short why an object changes, and how much of it.
func (o ObjectPreview) detail() string {
	var words []string
	count := len(o.Fields) + o.More
	switch {
	case count > 0:
		words = append(words, view.Plural(count, "field"))
	case o.Verb != string(plan.Create) && o.Reason != "":
		words = append(words, o.Reason)
	}
	if o.Unknown != "" {
		words = append(words, "not tried: "+o.Unknown)
	}
	if len(words) == 0 {
		return ""
	}
	return ": " + view.OneLine(strings.Join(words, "; "), kit.StatusWidth)
}

// longestValue of a field is shown in a line, in characters.
const longestValue = 120

func (t *planText) fields(o ObjectPreview) {
	for _, change := range o.Fields {
		fmt.Fprintf(t, "      %s: %s\n", view.OneLine(change.Path, view.LongestItem), changeText(change))
	}
	if o.More > 0 {
		fmt.Fprintf(t, "      and %s\n", view.Plural(o.More, "more field"))
	}
}

func changeText(c fields.Change) string {
	switch {
	case c.Before == fields.Hidden && c.After == fields.Hidden:
		return "changes " + fields.Hidden
	case c.Before == nil:
		return "adds " + valueText(c.After)
	case c.After == nil:
		return "removes " + valueText(c.Before)
	}
	return valueText(c.Before) + " -> " + valueText(c.After)
}

func valueText(value any) string {
	if value == fields.Hidden {
		return fields.Hidden
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	return view.OneLine(string(printer.EscapeHidden(encoded, visible.JSON)), longestValue)
}

func (t *planText) impact(v ImpactPreview) {
	var lines []string
	for _, p := range v.Permissions {
		where := "in the whole cluster"
		if p.Namespace != "" {
			where = "in namespace " + p.Namespace
		}
		lines = append(lines, fmt.Sprintf("%s, %s: %s", p.Subject, where, strings.Join(p.May, "; ")))
	}
	t.list("New permissions:", lines, printer.Red)
	lines = nil
	for _, d := range v.Definitions {
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s %s: %s", strings.ToLower(d.Change), d.Name, strings.Join(d.Details, "; ")), ": "))
	}
	t.list("CustomResourceDefinitions:", lines, printer.Yellow)
	t.list("Images:", imageLines(v.Images), printer.Plain)
	lines = nil
	for _, r := range v.Restarts {
		line := r.Object + ": " + strings.Join(r.Fields[:min(len(r.Fields), 3)], ", ")
		if more := len(r.Fields) - 3; more > 0 {
			line += fmt.Sprintf(" and %d more", more)
		}
		if r.Note != "" {
			line += "; " + r.Note
		}
		lines = append(lines, line)
	}
	t.list("Pods are replaced:", lines, printer.Yellow)
}

// imageLines list each change of an image once, with the number of containers that use it.
func imageLines(images []ImagePreview) []string {
	uses := map[string][]string{}
	var lines []string
	for _, i := range images {
		text := i.From + " -> " + i.To
		switch {
		case i.From == "":
			text = "new: " + i.To
		case i.To == "":
			text = "no longer: " + i.From
		}
		if uses[text] == nil {
			lines = append(lines, text)
		}
		uses[text] = append(uses[text], i.Container+" of "+i.Object)
	}
	for at, text := range lines {
		lines[at] += " (" + uses[text][0]
		if more := len(uses[text]) - 1; more > 0 {
			lines[at] += fmt.Sprintf(" and %d more", more)
		}
		lines[at] += ")"
	}
	return lines
}

// digests say what would be approved, and how.
func (t *planText) digests(v *Preview, name string) {
	content, same := v.Content, "content"
	if v.secret {
		content, same = "not shown, because it includes values of Secrets", "revision"
	}
	fmt.Fprintf(t, "\n%s %s\n", t.style.Paint(printer.Bold, "Content:"), content)
	if v.Digest != "" {
		fmt.Fprintf(t, "%s %s, by the controller, of the same %s\n", t.style.Paint(printer.Bold, "Plan:   "), view.Inline(v.Digest), same)
	}
	approval := "not needed, because spec.approval.mode is " + v.Approval.Mode
	switch {
	case v.Approval.Needed && v.Digest != "":
		approval = fmt.Sprintf("needed: %s. To approve it: %s approve %s -n %s", strings.Join(v.Approval.Because, ", "), name, view.ShellWord(v.Name), view.ShellWord(v.Namespace))
	case v.Approval.Needed:
		approval = fmt.Sprintf("needed: %s. The digest is known once the controller has planned it", strings.Join(v.Approval.Because, ", "))
	case v.Mode != v1alpha1.ApprovalAutomatic:
		approval = "nothing waits for approval; spec.approval.mode is " + v.Approval.Mode
	}
	fmt.Fprintf(t, "%s %s\n", t.style.Paint(printer.Bold, "Approval:"), view.Bounded(approval))
}
