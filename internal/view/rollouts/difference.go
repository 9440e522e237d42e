// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/satchel-dev/satchel/internal/view"
)

// longestValue is how much of a value is shown of a difference, in characters.
const longestValue = 60

// decoded is JSON as plain values; nil where it is none.
func decoded(raw []byte) any {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return nil
	}
	return value
}

// plain is any value as those of JSON.
func plain(value any) any {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return decoded(raw)
}

// difference lists what differs between two values of JSON, by path. Lists are compared as a whole.
func difference(path string, before, after any) []string {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	one, isObject := before.(map[string]any)
	other, isOtherObject := after.(map[string]any)
	if !isObject || !isOtherObject {
		return []string{path + ": " + shown(before) + " → " + shown(after)}
	}
	keys := map[string]bool{}
	for key := range one {
		keys[key] = true
	}
	for key := range other {
		keys[key] = true
	}
	var changes []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		changes = append(changes, difference(path+"."+view.Inline(key), one[key], other[key])...)
	}
	return changes
}

// shown is a value in short.
func shown(value any) string {
	if value == nil {
		return "(none)"
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	return view.OneLine(string(raw), longestValue)
}
