// SPDX-License-Identifier: Apache-2.0

package cli

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
)

// eventList is what happened. Its JSON form is what events -o json prints.
type eventList struct {
	Events  []event  `json:"events"`
	Older   int      `json:"older,omitempty"` // left out by the limit
	Omitted []string `json:"omitted,omitempty"`
}

// event is what happened to an object, once or again.
type event struct {
	First   metav1.Time `json:"first"`
	Last    metav1.Time `json:"last"`
	Count   int         `json:"count"`
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Object  traceLink   `json:"object"`
	Message string      `json:"message"`
	From    string      `json:"from,omitempty"`
}

// newEvent reads an event of either API.
func newEvent(e *corev1.Event) event {
	about := e.InvolvedObject
	found := event{Type: e.Type, Reason: e.Reason, Message: e.Message, Count: max(1, int(e.Count)),
		From:   cmp.Or(e.ReportingController, e.Source.Component),
		Object: traceLink{Group: schema.FromAPIVersionAndKind(about.APIVersion, about.Kind).Group, Kind: about.Kind, Namespace: about.Namespace, Name: about.Name},
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

// merged sorts events by time, and merges equal ones.
func merged(events []event) []event {
	type key struct {
		kind                  string
		object                inventory.ID
		reason, message, from string
	}
	var kept []event
	at := map[key]int{}
	for _, e := range events {
		k := key{e.Type, e.Object.id(), e.Reason, e.Message, e.From}
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
	slices.SortStableFunc(kept, func(a, b event) int {
		return cmp.Or(a.Last.Compare(b.Last.Time), a.First.Compare(b.First.Time), a.Object.id().Compare(b.Object.id()))
	})
	return kept
}

// table lists the events.
func (l eventList) table(wide bool, now time.Time) *table {
	t := &table{headers: []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}}
	if wide {
		t.headers = []string{"LAST SEEN", "FIRST SEEN", "COUNT", "TYPE", "REASON", "OBJECT", "FROM", "MESSAGE"}
	}
	for _, e := range l.Events {
		texts := []string{age(now, e.Last), e.Type, e.Reason, e.title(), bounded(e.text(!wide))}
		if wide {
			texts = []string{age(now, e.Last), age(now, e.First), strconv.Itoa(e.Count), e.Type, e.Reason, e.title(), dash(e.From), bounded(e.text(false))}
		}
		row := t.add(texts...)
		if e.Type != corev1.EventTypeNormal {
			row[len(row)-len(t.headers)+slices.Index(t.headers, "TYPE")].color = yellow
		}
	}
	return t
}

// title names the object without its group.
func (e event) title() string {
	id := e.Object.id()
	id.Group = ""
	return id.String()
}

// text is the message in one line, with how often it came.
func (e event) text(counted bool) string {
	text := allLines(e.Message)
	if counted && e.Count > 1 {
		text += fmt.Sprintf(" (%d times)", e.Count)
	}
	return text
}

// line is an event that just happened.
func (e event) line(s style) string {
	c := plain
	if e.Type != corev1.EventTypeNormal {
		c = yellow
	}
	return e.Last.Format(time.TimeOnly) + "  " + s.paint(c, inline(e.Type)+"  "+inline(e.Reason)) + "  " + inline(e.title()) + "  " + bounded(e.text(true))
}
