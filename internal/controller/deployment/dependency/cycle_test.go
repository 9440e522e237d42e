// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"strings"
	"testing"
)

func TestCycleThrough(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		graph  map[string]string
		want   string
	}{
		"none":           {"a chain has an end", map[string]string{"a": "b", "b": "c"}, ""},
		"diamond":        {"two ways to one is no circle", map[string]string{"a": "b c", "b": "d", "c": "d"}, ""},
		"itself":         {"the shortest circle", map[string]string{"a": "a"}, "a→a"},
		"three":          {"all are named, in order", map[string]string{"a": "b", "b": "c", "c": "a"}, "a→b→c→a"},
		"of others":      {"it merely leads to one", map[string]string{"a": "b", "b": "c", "c": "b"}, ""},
		"missing":        {"what does not exist depends on nothing", map[string]string{"a": "b"}, ""},
		"the shorter":    {"of two circles", map[string]string{"a": "b c", "b": "x", "x": "a", "c": "a"}, "a→c→a"},
		"through others": {"a circle on the way is passed", map[string]string{"a": "b", "b": "c d", "c": "b", "d": "a"}, "a→b→d→a"},
	} {
		t.Run(name, func(t *testing.T) {
			got := CycleThrough("a", func(of string) []string { return strings.Fields(c.graph[of]) })
			if strings.Join(got, "→") != c.want {
				t.Errorf("%s: got %v, want %s", c.reason, got, c.want)
			}
		})
	}
}
