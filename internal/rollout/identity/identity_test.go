// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// of is a name that left an hour ago, or is selected, with a BundleDeployment that is a day old.
func of(target string, change ...func(*Name)) Name {
	one := Name{Target: target, Server: target, Created: ago(24 * time.Hour), Compared: target != "", Left: ago(time.Hour)}
	for _, change := range change {
		change(&one)
	}
	return one
}

func selected(n *Name)    { n.Selected, n.Left = true, time.Time{} }
func elsewhere(n *Name)   { n.Server = "elsewhere" }
func unseen(n *Name)      { n.Server = "" }
func uncompared(n *Name)  { n.Compared = false }
func without(n *Name)     { n.Created, n.Compared, n.Target = time.Time{}, false, "" }
func justLeft(n *Name)    { n.Left = ago(time.Second) }
func justCreated(n *Name) { n.Created = ago(time.Minute) }

// TestR41Compare: what becomes of a name "old" that is no longer selected, beside other names.
func TestR41Compare(t *testing.T) {
	tests := map[string]struct {
		reason    string
		old       Name
		others    map[string]Name
		successor string
		claimed   bool   // the successor is not proven
		waits     string // part of it
		until     time.Time
	}{
		"alone":                        {reason: "it left", old: of("a")},
		"others":                       {reason: "they are other clusters", old: of("a"), others: map[string]Name{"x": of("b", selected), "y": of("c", selected, uncompared)}},
		"renamed":                      {reason: "new takes over", old: of("a"), others: map[string]Name{"new": of("a", selected)}, successor: "new"},
		"renamed a moment ago":         {reason: "what takes over is known", old: of("a", justLeft), others: map[string]Name{"new": of("a", selected)}, successor: "new"},
		"renamed, no plan yet":         {reason: "nothing says that new wants the objects", old: of("a"), others: map[string]Name{"new": of("a", selected, uncompared)}, successor: "new", waits: "before the BundleDeployment of new has a plan"},
		"deleted first":                {reason: "the other name may follow", old: of("a", justLeft), waits: "in 30s", until: now.Add(29 * time.Second)},
		"new name waits for approval":  {reason: "it is not started, and nothing is asked of its server", old: of("a"), others: map[string]Name{"new": of("", selected, without)}, waits: "before the cluster new"},
		"new name cannot be reached":   {reason: "it may be the same", old: of("a"), others: map[string]Name{"new": of("", selected, justCreated)}, waits: "before the cluster new", until: now.Add(59 * time.Minute)},
		"new name was never reached":   {reason: "an hour is over", old: of("a"), others: map[string]Name{"new": of("", selected)}},
		"both":                         {reason: "the one without BundleDeployment has no limit", old: of("a"), others: map[string]Name{"new": of("", selected, justCreated), "next": of("", selected, without)}, waits: "before the cluster"},
		"never reached itself":         {reason: "it has no objects", old: of("", justLeft), others: map[string]Name{"new": of("", selected, without)}},
		"another one leaves":           {reason: "it takes nothing over", old: of("a"), others: map[string]Name{"new": of("a")}},
		"two successors, one compared": {reason: "the first that is compared", old: of("a"), others: map[string]Name{"m": of("a", selected, uncompared), "n": of("a", selected)}, successor: "n"},
		"older successor":              {reason: "it has the objects", old: of("a"), others: map[string]Name{"m": of("a", selected, justCreated), "n": of("a", selected)}, successor: "n"},
		"claims it":                    {reason: "another server says so", old: of("a"), others: map[string]Name{"new": of("a", selected, elsewhere)}, successor: "new", claimed: true},
		"claims it, server not known":  {reason: "nothing proves it", old: of("a"), others: map[string]Name{"new": of("a", selected, unseen)}, successor: "new", claimed: true},
		"claims it, neither is known":  {reason: "nothing proves it", old: of("a", unseen), others: map[string]Name{"new": of("a", selected, unseen)}, successor: "new", claimed: true},
		"claims it, no plan yet":       {reason: "it may be true", old: of("a"), others: map[string]Name{"new": of("a", selected, elsewhere, uncompared)}, successor: "new", claimed: true, waits: "has a plan"},
		"claims it a moment ago":       {reason: "the true name may follow", old: of("a", justLeft), others: map[string]Name{"new": of("a", selected, elsewhere)}, waits: "in 30s", until: now.Add(29 * time.Second)},
		"claims it, another may be it": {reason: "the true name may not be reached yet", old: of("a"), others: map[string]Name{"m": of("a", selected, elsewhere), "new": of("", selected, without)}, waits: "before the cluster new"},
		"claims it, older than it":     {reason: "the proven one", old: of("a"), others: map[string]Name{"m": of("a", selected, elsewhere), "new": of("a", selected, justCreated)}, successor: "new"},
		"claims it, it has no plan":    {reason: "the proven one is waited for", old: of("a"), others: map[string]Name{"m": of("a", selected, elsewhere), "new": of("a", selected, justCreated, uncompared)}, successor: "new", waits: "has a plan"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			names := map[string]Name{"old": tc.old}
			maps.Copy(names, tc.others)
			got := Compare(names, now)["old"]
			if got.Successor != tc.successor || got.Proven != (tc.successor != "" && !tc.claimed) || (got.Waits == "") != (tc.waits == "") || !strings.Contains(got.Waits, tc.waits) || !got.Until.Equal(tc.until) {
				t.Errorf("%s: %+v", tc.reason, got)
			}
		})
	}
}

func TestR41Duplicates(t *testing.T) {
	names := map[string]Name{
		"a1": of("a", selected), "a2": of("a", selected), "b-new": of("b", selected), "b-old": of("b"), "c": of("c", selected),
		"unknown1": of("", selected), "unknown2": of("", selected, without), "d-old": of("d"), "d-older": of("d"),
	}
	if got := slices.Sorted(maps.Keys(Duplicates(names))); !slices.Equal(got, []string{"a1", "a2", "b-new"}) {
		t.Errorf("duplicates: %v", got)
	}
}

func TestRecheck(t *testing.T) {
	leaving := map[string]Leaving{"a": {Until: now.Add(time.Minute)}, "b": {Until: now.Add(20 * time.Second)}, "c": {}, "d": {Until: ago(time.Second)}}
	for pause, want := range map[time.Duration]time.Duration{0: 20 * time.Second, time.Hour: 20 * time.Second, time.Second: time.Second} {
		if got := Recheck(leaving, now, pause); got != want {
			t.Errorf("pause %s: %s, want %s", pause, got, want)
		}
	}
}
