// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"maps"
	"slices"
)

// comparison collects changes.
type comparison struct {
	wanted  bool // only fields that after has
	changes []Change
	more    int
}

func (c *comparison) add(at place, before, after any) {
	if c.wanted && after == nil {
		return
	}
	if len(c.changes) >= Most {
		c.more++
		return
	}
	path := at.path
	if path == "" {
		path = "."
	}
	c.changes = append(c.changes, Change{Path: path, Before: shown(before), After: shown(after), steps: at.steps})
}

func (c *comparison) value(at place, before, after any) {
	if c.same(before, after) {
		return
	}
	switch before := before.(type) {
	case map[string]any:
		if after, ok := after.(map[string]any); ok {
			c.fields(at, before, after)
			return
		}
	case []any:
		if after, ok := after.([]any); ok {
			c.items(at, before, after)
			return
		}
	}
	c.add(at, before, after)
}

func (c *comparison) fields(at place, before, after map[string]any) {
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c.value(at.field(name), before[name], after[name])
	}
}

// same tells whether two values have the same meaning: numbers by their value, and null, an
// empty map and an empty list as if they were absent.
func (c *comparison) same(before, after any) bool {
	if empty(before) || empty(after) {
		return empty(before) && empty(after) || c.wanted && after == nil
	}
	switch before := before.(type) {
	case map[string]any:
		after, ok := after.(map[string]any)
		return ok && c.sameFields(before, after)
	case []any:
		after, ok := after.([]any)
		return ok && len(before) == len(after) && c.sameItems(before, after)
	}
	return sameScalar(before, after)
}

func (c *comparison) sameFields(before, after map[string]any) bool {
	for name, value := range after {
		if !c.same(before[name], value) {
			return false
		}
	}
	for name, value := range before {
		if _, both := after[name]; !both && !c.wanted && !empty(value) {
			return false
		}
	}
	return true
}

func (c *comparison) sameItems(before, after []any) bool {
	for i := range before {
		if !c.same(before[i], after[i]) {
			return false
		}
	}
	return true
}

func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

func sameScalar(a, b any) bool {
	switch a := a.(type) {
	case int64:
		switch b := b.(type) {
		case int64:
			return a == b
		case float64:
			return float64(a) == b
		}
		return false
	case float64:
		switch b := b.(type) {
		case int64:
			return a == float64(b)
		case float64:
			return a == b
		}
		return false
	case string, bool, secret:
		return a == b
	}
	return false // not a type of JSON
}
