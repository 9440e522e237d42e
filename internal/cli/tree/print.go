// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// MostAlike is how many healthy objects of one kind and namespace are shown that own nothing.
const MostAlike = 20

// reasonWidth is where reasons are cut, unless the output is wide.
const reasonWidth = 120

// healthColors are those of the states.
var healthColors = map[string]printer.Color{
	HealthyWord: printer.Green, string(health.InProgress): printer.Yellow, string(health.Terminating): printer.Yellow, string(health.Unknown): printer.Yellow,
	string(health.Failed): printer.Red, string(health.Missing): printer.Red,
}

// treeTable draws the tree in the first column of a table.
type treeTable struct {
	*printer.Table

	now  time.Time
	wide bool
	all  bool
}

// Print writes the tree for people.
func (t Tree) Print(s printer.Style, now time.Time, o Options) string {
	drawn := treeTable{Table: &printer.Table{Headers: []string{"OBJECT", "HEALTH", "AGE", "REASON"}}, now: now, wide: o.Output == printer.OutputWide, all: o.All}
	drawn.row(view.Inline(v1alpha1.BundleDeploymentKind+" "+t.Namespace+"/"+t.Name), printer.Cell{Text: t.State, Color: t.color}, view.Age(now, t.Created), t.Message)
	drawn.draw(t.Objects, "")
	return drawn.Render(s)
}

// row adds a line. Unlike other cells the first one begins with blanks.
func (t treeTable) row(object string, state printer.Cell, age, reason string) {
	limit := reasonWidth
	if t.wide {
		reason, limit = AllLines(reason), 0
	}
	state.Text = view.Inline(state.Text)
	t.Rows = append(t.Rows, []printer.Cell{{Text: object}, state, {Text: age}, {Text: view.OneLine(reason, limit)}})
}

func (t treeTable) draw(nodes []*Node, indent string) {
	shown, hidden := nodes, map[*Node]int(nil)
	if !t.all {
		shown, hidden = condensed(nodes)
	}
	for i, n := range shown {
		branch, further := "├─ ", "│  "
		if i == len(shown)-1 {
			branch, further = "└─ ", "   "
		}
		if more := hidden[n]; more > 0 {
			t.row(fmt.Sprintf("%s%s… and %d more %s", indent, branch, more, n.kindAndPlace()), printer.Cell{Text: n.Health, Color: healthColors[n.Health]}, "", "--all shows them")
			continue
		}
		born := "-"
		if n.Created != nil {
			born = view.Age(t.now, *n.Created)
		}
		t.row(indent+branch+n.title(t.wide), printer.Cell{Text: n.Health, Color: healthColors[n.Health]}, born, n.Reason)
		t.draw(n.Owned, indent+further)
	}
}

// title names an object, wide with its group.
func (n *Node) title(wide bool) string {
	if wide {
		return view.Inline(n.id().String())
	}
	id := n.id()
	id.Group = ""
	return view.Inline(id.String())
}

func (n *Node) kindAndPlace() string {
	if n.Namespace == "" {
		return view.Inline(n.Kind)
	}
	return view.Inline(n.Kind + " of " + n.Namespace)
}

// condensed leaves out healthy objects where there are many of a kind. The last node of each
// such run has the number of those that are left out.
func condensed(nodes []*Node) (shown []*Node, hidden map[*Node]int) {
	type alike struct{ group, kind, namespace, health string }
	hidden = map[*Node]int{}
	seen := map[alike]int{}
	last := map[alike]*Node{}
	for _, n := range nodes {
		key := alike{n.Group, n.Kind, n.Namespace, n.Health}
		unlooked := n.Health == string(health.Unknown) && n.Created == nil
		if n.Health != HealthyWord && !unlooked || len(n.Owned) > 0 {
			shown = append(shown, n)
			continue
		}
		if seen[key]++; seen[key] <= MostAlike {
			shown = append(shown, n)
			continue
		}
		if last[key] == nil {
			rest := *n
			last[key] = &rest
			shown = append(shown, &rest)
		}
		hidden[last[key]]++
	}
	return shown, hidden
}

// Happening is a change of an object between two reads.
type Happening struct {
	at     metav1.Time
	object string
	state  printer.Cell
	reason string
}

// Line is how it is shown.
func (c Happening) Line(s printer.Style) string {
	text := c.at.Format(time.TimeOnly) + "  " + c.object + "  " + s.Paint(c.state.Color, c.state.Text)
	if c.reason != "" {
		text += "  " + c.reason
	}
	return text
}

// Happenings lists the differences of two reads: new objects, gone ones, and changed states or reasons.
func Happenings(before, after Tree, now time.Time) []Happening {
	known := map[inventory.ID]*Node{}
	before.Walk(func(n *Node) { known[n.id()] = n })
	var found []Happening
	report := func(object, state string, c printer.Color, reason string) {
		found = append(found, Happening{at: metav1.NewTime(now), object: object, state: printer.Cell{Text: view.Inline(state), Color: c}, reason: view.OneLine(reason, 0)})
	}
	if before.State != after.State || before.Message != after.Message || before.Revision != after.Revision {
		text := after.Message
		if before.Revision != after.Revision {
			text = strings.TrimSpace("revision " + kit.Dash(view.ShortRevision(after.Revision)) + "  " + text)
		}
		report(view.Inline(v1alpha1.BundleDeploymentKind+" "+after.Namespace+"/"+after.Name), after.State, after.color, text)
	}
	after.Walk(func(n *Node) {
		was := known[n.id()]
		delete(known, n.id())
		switch {
		case was == nil:
			report(n.title(false), n.Health, healthColors[n.Health], strings.TrimSpace("new  "+n.Reason))
		case was.UID != n.UID && was.UID != "" && n.UID != "":
			report(n.title(false), n.Health, healthColors[n.Health], strings.TrimSpace("recreated  "+n.Reason))
		case was.Health != n.Health || was.Reason != n.Reason:
			report(n.title(false), was.Health+" → "+n.Health, healthColors[n.Health], n.Reason)
		}
	})
	before.Walk(func(n *Node) {
		if known[n.id()] != nil {
			report(n.title(false), "gone", printer.Faint, "")
		}
	})
	return found
}

// AllLines is a text of several lines in one.
func AllLines(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }), "; ")
}
