// SPDX-License-Identifier: Apache-2.0

package see

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/trace"
	"github.com/satchel-dev/satchel/internal/cli/tree"
	"github.com/satchel-dev/satchel/internal/view"
)

// EventList is what happened. Its JSON form is what events -o json prints.
type EventList struct {
	Events  []Event  `json:"events"`
	Older   int      `json:"older,omitempty"` // left out by the limit
	Omitted []string `json:"omitted,omitempty"`
}

// Event is what happened to an object, once or again.
type Event struct {
	First   metav1.Time `json:"first"`
	Last    metav1.Time `json:"last"`
	Count   int         `json:"count"`
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Object  trace.Link  `json:"object"`
	Message string      `json:"message"`
	From    string      `json:"from,omitempty"`
}

// NewEvent reads an event of either API.
func NewEvent(e *corev1.Event) Event {
	about := e.InvolvedObject
	found := Event{Type: e.Type, Reason: e.Reason, Message: e.Message, Count: max(1, int(e.Count)),
		From:   cmp.Or(e.ReportingController, e.Source.Component),
		Object: trace.Link{Group: schema.FromAPIVersionAndKind(about.APIVersion, about.Kind).Group, Kind: about.Kind, Namespace: about.Namespace, Name: about.Name},
		First:  e.FirstTimestamp, Last: e.LastTimestamp,
	}
	times := []metav1.Time{e.FirstTimestamp, e.LastTimestamp, {Time: e.EventTime.Time}}
	if e.Series != nil {
		found.Count = max(found.Count, int(e.Series.Count))
		times = append(times, metav1.Time{Time: e.Series.LastObservedTime.Time})
	}
	times = slices.DeleteFunc(times, func(t metav1.Time) bool { return t.IsZero() })
	if len(times) == 0 {
		times = []metav1.Time{e.CreationTimestamp}
	}
	byTime := func(a, b metav1.Time) int { return a.Compare(b.Time) }
	found.First, found.Last = slices.MinFunc(times, byTime), slices.MaxFunc(times, byTime)
	return found
}

// Merged sorts events by time, and merges equal ones.
func Merged(events []Event) []Event {
	type key struct {
		kind                  string
		object                inventory.ID
		reason, message, from string
	}
	var kept []Event
	at := map[key]int{}
	for _, e := range events {
		k := key{e.Type, e.Object.ID(), e.Reason, e.Message, e.From}
		i, again := at[k]
		if !again {
			at[k] = len(kept)
			kept = append(kept, e)
			continue
		}
		same := &kept[i]
		same.Count += e.Count
		if e.First.Before(&same.First) {
			same.First = e.First
		}
		if same.Last.Before(&e.Last) {
			same.Last = e.Last
		}
	}
	slices.SortStableFunc(kept, func(a, b Event) int {
		return cmp.Or(a.Last.Compare(b.Last.Time), a.First.Compare(b.First.Time), a.Object.ID().Compare(b.Object.ID()))
	})
	return kept
}

// Table lists the events.
func (l EventList) Table(wide bool, now time.Time) *printer.Table {
	t := &printer.Table{Headers: []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}}
	if wide {
		t.Headers = []string{"LAST SEEN", "FIRST SEEN", "COUNT", "TYPE", "REASON", "OBJECT", "FROM", "MESSAGE"}
	}
	for _, e := range l.Events {
		texts := []string{view.Age(now, e.Last), e.Type, e.Reason, e.title(), view.Bounded(e.text(!wide))}
		if wide {
			texts = []string{view.Age(now, e.Last), view.Age(now, e.First), strconv.Itoa(e.Count), e.Type, e.Reason, e.title(), kit.Dash(e.From), view.Bounded(e.text(false))}
		}
		row := t.Add(texts...)
		if e.Type != corev1.EventTypeNormal {
			row[len(row)-len(t.Headers)+slices.Index(t.Headers, "TYPE")].Color = printer.Yellow
		}
	}
	return t
}

// title names the object without its group.
func (e Event) title() string {
	id := e.Object.ID()
	id.Group = ""
	return id.String()
}

// text is the message in one line, with how often it came.
func (e Event) text(counted bool) string {
	text := tree.AllLines(e.Message)
	if counted && e.Count > 1 {
		text += fmt.Sprintf(" (%d times)", e.Count)
	}
	return text
}

// Line is an event that just happened.
func (e Event) Line(s printer.Style) string {
	c := printer.Plain
	if e.Type != corev1.EventTypeNormal {
		c = printer.Yellow
	}
	return e.Last.Format(time.TimeOnly) + "  " + s.Paint(c, view.Inline(e.Type)+"  "+view.Inline(e.Reason)) + "  " + view.Inline(e.title()) + "  " + view.Bounded(e.text(true))
}
