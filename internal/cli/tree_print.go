// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// mostAlike is how many healthy objects of one kind and namespace are shown that own nothing.
const mostAlike = 20

// reasonWidth is where reasons are cut, unless the output is wide.
const reasonWidth = 120

// healthColors are those of the states.
var healthColors = map[string]color{
	healthyWord: green, string(health.InProgress): yellow, string(health.Terminating): yellow, string(health.Unknown): yellow,
	string(health.Failed): red, string(health.Missing): red,
}

// treeTable draws the tree in the first column of a table.
type treeTable struct {
	*table

	now  time.Time
	wide bool
	all  bool
}

// print writes the tree for people.
func (t tree) print(s style, now time.Time, o treeOptions) string {
	drawn := treeTable{table: &table{headers: []string{"OBJECT", "HEALTH", "AGE", "REASON"}}, now: now, wide: o.output == outputWide, all: o.all}
	drawn.row(inline(v1alpha1.BundleDeploymentKind+" "+t.Namespace+"/"+t.Name), cell{t.state, t.color}, age(now, t.Created), t.Message)
	drawn.draw(t.Objects, "")
	return drawn.render(s)
}

// row adds a line. Unlike other cells the first one begins with blanks.
func (t treeTable) row(object string, state cell, age, reason string) {
	limit := reasonWidth
	if t.wide {
		reason, limit = allLines(reason), 0
	}
	state.text = inline(state.text)
	t.rows = append(t.rows, []cell{{text: object}, state, {text: age}, {text: oneLine(reason, limit)}})
}

func (t treeTable) draw(nodes []*treeNode, indent string) {
	shown, hidden := nodes, map[*treeNode]int(nil)
	if !t.all {
		shown, hidden = condensed(nodes)
	}
	for i, n := range shown {
		branch, further := "├─ ", "│  "
		if i == len(shown)-1 {
			branch, further = "└─ ", "   "
		}
		if more := hidden[n]; more > 0 {
			t.row(fmt.Sprintf("%s%s… and %d more %s", indent, branch, more, n.kindAndPlace()), cell{n.Health, healthColors[n.Health]}, "", "--all shows them")
			continue
		}
		born := "-"
		if n.Created != nil {
			born = age(t.now, *n.Created)
		}
		t.row(indent+branch+n.title(t.wide), cell{n.Health, healthColors[n.Health]}, born, n.Reason)
		t.draw(n.Owned, indent+further)
	}
}

// title names an object, wide with its group.
func (n *treeNode) title(wide bool) string {
	if wide {
		return inline(n.id().String())
	}
	id := n.id()
	id.Group = ""
	return inline(id.String())
}

func (n *treeNode) kindAndPlace() string {
	if n.Namespace == "" {
		return inline(n.Kind)
	}
	return inline(n.Kind + " of " + n.Namespace)
}

// condensed leaves out healthy objects where there are many of a kind. The last node of each
// such run has the number of those that are left out.
func condensed(nodes []*treeNode) (shown []*treeNode, hidden map[*treeNode]int) {
	type alike struct{ group, kind, namespace, health string }
	hidden, seen, last := map[*treeNode]int{}, map[alike]int{}, map[alike]*treeNode{}
	for _, n := range nodes {
		key := alike{n.Group, n.Kind, n.Namespace, n.Health}
		unlooked := n.Health == string(health.Unknown) && n.Created == nil
		if n.Health != healthyWord && !unlooked || len(n.Owned) > 0 {
			shown = append(shown, n)
			continue
		}
		if seen[key]++; seen[key] <= mostAlike {
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

// happening is a change of an object between two reads.
type happening struct {
	at     metav1.Time
	object string
	state  cell
	reason string
}

// line is how it is shown.
func (c happening) line(s style) string {
	text := c.at.Format(time.TimeOnly) + "  " + c.object + "  " + s.paint(c.state.color, c.state.text)
	if c.reason != "" {
		text += "  " + c.reason
	}
	return text
}

// happenings lists the differences of two reads: new objects, gone ones, and changed states or reasons.
func happenings(before, after tree, now time.Time) []happening {
	known := map[inventory.ID]*treeNode{}
	before.walk(func(n *treeNode) { known[n.id()] = n })
	var found []happening
	report := func(object, state string, c color, reason string) {
		found = append(found, happening{at: metav1.NewTime(now), object: object, state: cell{inline(state), c}, reason: oneLine(reason, 0)})
	}
	if before.state != after.state || before.Message != after.Message || before.Revision != after.Revision {
		text := after.Message
		if before.Revision != after.Revision {
			text = strings.TrimSpace("revision " + dash(shortRevision(after.Revision)) + "  " + text)
		}
		report(inline(v1alpha1.BundleDeploymentKind+" "+after.Namespace+"/"+after.Name), after.state, after.color, text)
	}
	after.walk(func(n *treeNode) {
		was := known[n.id()]
		delete(known, n.id())
		switch {
		case was == nil:
			report(n.title(false), n.Health, healthColors[n.Health], strings.TrimSpace("new  "+n.Reason))
		case was.uid != n.uid && was.uid != "" && n.uid != "":
			report(n.title(false), n.Health, healthColors[n.Health], strings.TrimSpace("recreated  "+n.Reason))
		case was.Health != n.Health || was.Reason != n.Reason:
			report(n.title(false), was.Health+" → "+n.Health, healthColors[n.Health], n.Reason)
		}
	})
	before.walk(func(n *treeNode) {
		if known[n.id()] != nil {
			report(n.title(false), "gone", faint, "")
		}
	})
	return found
}

// allLines is a text of several lines in one.
func allLines(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }), "; ")
}
