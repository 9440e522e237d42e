// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/fields"
	"github.com/satchel-dev/satchel/internal/visible"
)

// verbMarks are the signs, words and colours of the changes of objects.
var verbMarks = map[string]struct {
	sign, word string
	color      color
}{
	string(plan.Create):   {"+", "create", green},
	string(plan.Repair):   {"+", "create again", green},
	string(plan.Update):   {"~", "update", yellow},
	string(plan.Adopt):    {"<", "adopt", yellow},
	string(plan.Recreate): {"±", "recreate", red},
	string(plan.Wait):     {"…", "wait for", yellow},
	verbDelete:            {"-", "delete", red},
	verbRelease:           {">", "release", yellow},
}

// planText writes a preview for people.
type planText struct {
	strings.Builder

	style style
	wide  bool
}

// print is the preview for people; name is that of the program.
func (v *preview) print(s style, name string, wide bool) string {
	t := &planText{style: s, wide: wide}
	fmt.Fprintf(t, "%s %s/%s: %s\n", v1alpha1.BundleDeploymentKind, inline(v.Namespace), s.paint(bold, inline(v.Name)), inline(v.Summary))
	if v.Applied != "" {
		fmt.Fprintf(t, "Current: %s\n", shortRevision(inline(v.Applied)))
	}
	t.objects(v)
	t.list("Hooks, each run once:", hookLines(v.Hooks), plain)
	t.impact(v.Impact)
	t.list("Refused, so nothing would be changed:", texts(v.Violations), red)
	if v.Held != "" {
		t.list("Held:", []string{v.Held}, yellow)
	}
	t.list(fmt.Sprintf("ServiceAccount %s lacks permissions:", v.Account.Name), texts(v.Account.Missing), red)
	t.list("Left out while the cluster does not serve their kinds:", v.Skipped, plain)
	t.list("Issued by the controller, and not shown:", v.Certificates, plain)
	t.digests(v, name)
	for _, warning := range v.Warnings {
		fmt.Fprintf(t, "%s %s\n", s.paint(yellow, "Warning:"), bounded(warning))
	}
	for _, note := range v.notes() {
		fmt.Fprintf(t, "%s %s\n", s.paint(bold, "Note:"), bounded(note))
	}
	return t.String()
}

// notes are those of the preview, and that about the ServiceAccount.
func (v *preview) notes() []string {
	notes := slices.Clone(v.Notes)
	if why := v.Account.Unchecked; why != "" {
		notes = append(notes, fmt.Sprintf("the permissions of ServiceAccount %s were not checked: %s", v.Account.Name, why))
	}
	return notes
}

func texts(violations []violationPreview) []string {
	list := make([]string, 0, len(violations))
	for _, v := range violations {
		list = append(list, v.String())
	}
	return list
}

// list writes lines below a heading; nothing when there are none.
func (t *planText) list(heading string, lines []string, c color) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(t, "\n%s\n", t.style.paint(bold, inline(heading)))
	for _, line := range lines {
		fmt.Fprintf(t, "  %s\n", t.style.paint(c, bounded(line)))
	}
}

func (t *planText) objects(v *preview) {
	if len(v.Objects) > 0 {
		t.WriteString("\n")
	}
	width := 0
	for _, o := range v.Objects {
		width = max(width, utf8.RuneCountInString(verbMarks[o.Verb].word))
	}
	for _, o := range v.Objects {
		mark := verbMarks[o.Verb]
		fmt.Fprintf(t, "  %s%s%s%s\n", t.style.paint(mark.color, mark.sign+" "+mark.word), padding(mark.word, width), inline(o.title()), o.detail())
		if o.Failed != "" {
			fmt.Fprintf(t, "      %s\n", t.style.paint(red, bounded("the API server refuses it: "+o.Failed)))
		}
		if o.Contested != "" {
			fmt.Fprintf(t, "      %s\n", t.style.paint(yellow, bounded(o.Contested)))
		}
		if t.wide {
			t.fields(o)
		}
	}
}

// detail says in short why an object changes, and how much of it.
func (o objectPreview) detail() string {
	var words []string
	count := len(o.Fields) + o.More
	switch {
	case count > 0:
		words = append(words, plural(count, "field"))
	case o.Verb != string(plan.Create) && o.Reason != "":
		words = append(words, o.Reason)
	}
	if o.Unknown != "" {
		words = append(words, "not tried: "+o.Unknown)
	}
	if len(words) == 0 {
		return ""
	}
	return ": " + oneLine(strings.Join(words, "; "), statusWidth)
}

// longestValue of a field is shown in a line, in characters.
const longestValue = 120

func (t *planText) fields(o objectPreview) {
	for _, change := range o.Fields {
		fmt.Fprintf(t, "      %s: %s\n", oneLine(change.Path, longestItem), changeText(change))
	}
	if o.More > 0 {
		fmt.Fprintf(t, "      and %s\n", plural(o.More, "more field"))
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
	return oneLine(string(escapeHidden(encoded, visible.JSON)), longestValue)
}

func (t *planText) impact(v impactPreview) {
	var lines []string
	for _, p := range v.Permissions {
		where := "in the whole cluster"
		if p.Namespace != "" {
			where = "in namespace " + p.Namespace
		}
		lines = append(lines, fmt.Sprintf("%s, %s: %s", p.Subject, where, strings.Join(p.May, "; ")))
	}
	t.list("New permissions:", lines, red)
	lines = nil
	for _, d := range v.Definitions {
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s %s: %s", strings.ToLower(d.Change), d.Name, strings.Join(d.Details, "; ")), ": "))
	}
	t.list("CustomResourceDefinitions:", lines, yellow)
	t.list("Images:", imageLines(v.Images), plain)
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
	t.list("Pods are replaced:", lines, yellow)
}

// imageLines list each change of an image once, with the number of containers that use it.
func imageLines(images []imagePreview) []string {
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
func (t *planText) digests(v *preview, name string) {
	content, same := v.Content, "content"
	if v.secret {
		content, same = "not shown, because it includes values of Secrets", "revision"
	}
	fmt.Fprintf(t, "\n%s %s\n", t.style.paint(bold, "Content:"), content)
	if v.Digest != "" {
		fmt.Fprintf(t, "%s %s, by the controller, of the same %s\n", t.style.paint(bold, "Plan:   "), inline(v.Digest), same)
	}
	approval := "not needed, because spec.approval.mode is " + v.Approval.Mode
	switch {
	case v.Approval.Needed && v.Digest != "":
		approval = fmt.Sprintf("needed: %s. To approve it: %s approve %s -n %s", strings.Join(v.Approval.Because, ", "), name, shellWord(v.Name), shellWord(v.Namespace))
	case v.Approval.Needed:
		approval = fmt.Sprintf("needed: %s. The digest is known once the controller has planned it", strings.Join(v.Approval.Because, ", "))
	case v.mode != v1alpha1.ApprovalAutomatic:
		approval = "nothing waits for approval; spec.approval.mode is " + v.Approval.Mode
	}
	fmt.Fprintf(t, "%s %s\n", t.style.paint(bold, "Approval:"), bounded(approval))
}
