// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

// steadyFunctions take the place of functions of sprig that give different results on different machines, or at each call:
// the order of keys, the local zone, the separator of paths.
func steadyFunctions() template.FuncMap {
	round := sprig.TxtFuncMap()["durationRound"].(func(any) string) //nolint:errcheck,forcetypeassert // a test calls it
	return template.FuncMap{
		"keys":           sortedKeys,
		"values":         valuesByKey,
		"date":           func(layout string, when any) (string, error) { return date(layout, when, "UTC") },
		"dateInZone":     date,
		"date_in_zone":   date,
		"htmlDate":       func(when any) (string, error) { return date(time.DateOnly, when, "UTC") },
		"htmlDateInZone": func(when any, zone string) (string, error) { return date(time.DateOnly, when, zone) },
		"toDate": func(layout, text string) time.Time {
			when, _ := time.Parse(layout, text) // as sprig has it: else the zero time
			return when
		},
		"mustToDate": time.Parse,
		"durationRound": func(of any) (string, error) {
			if _, isTime := of.(time.Time); isTime {
				return "", &refusal{function: "durationRound", why: isClock}
			}
			return round(of), nil
		},
		"osBase": path.Base, "osClean": path.Clean, "osDir": path.Dir, "osExt": path.Ext, "osIsAbs": path.IsAbs,
	}
}

func sortedKeys(dicts ...map[string]any) []string {
	all := []string{}
	for _, m := range dicts {
		all = append(all, slices.Sorted(maps.Keys(m))...)
	}
	return all
}

func valuesByKey(m map[string]any) []any {
	all := make([]any, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, m[key])
	}
	return all
}

// date prints a time. Sprig takes the present one where it is given none, and reads zones from files of the machine.
func date(layout string, of any, zone string) (string, error) {
	var when time.Time
	switch t := of.(type) {
	case time.Time:
		when = t
	case *time.Time:
		when = *t
	case int64:
		when = time.Unix(t, 0)
	case int:
		when = time.Unix(int64(t), 0)
	case int32:
		when = time.Unix(int64(t), 0)
	default:
		return "", &refusal{function: "date", why: "prints the time of day, as it is given no time"}
	}
	switch zone {
	case "", "UTC", "Local":
		return when.UTC().Format(layout), nil
	}
	return "", fmt.Errorf("the zone is not UTC: others are read from the machine")
}
