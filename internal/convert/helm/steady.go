// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/Masterminds/sprig/v3"
)

// steady are replacements for functions of sprig and Helm that return different results on different machines or calls: the
// order of keys, the local time zone, the path separator.
func (c *chance) steady() template.FuncMap {
	round := sprig.TxtFuncMap()["durationRound"].(func(any) string) //nolint:errcheck,forcetypeassert // a test calls it
	return template.FuncMap{
		"keys":           sortedKeys,
		"values":         valuesByKey,
		"date":           func(layout string, when any) (string, error) { return c.date(layout, when, "UTC") },
		"dateInZone":     c.date,
		"date_in_zone":   c.date,
		"htmlDate":       func(when any) (string, error) { return c.date(time.DateOnly, when, "UTC") },
		"htmlDateInZone": func(when any, zone string) (string, error) { return c.date(time.DateOnly, when, zone) },
		"toDate": func(layout, text string) time.Time {
			when, _ := time.Parse(layout, text) // as sprig has it: else the zero time
			return when
		},
		"mustToDate": time.Parse,
		"durationRound": func(of any) (string, error) {
			when, isTime := of.(time.Time)
			if !isTime {
				return round(of), nil
			}
			now, err := c.now("durationRound")
			return round(now.Sub(when).String()), err
		},
		"osBase": path.Base, "osClean": path.Clean, "osDir": path.Dir, "osExt": path.Ext, "osIsAbs": path.IsAbs,
		"fromToml": fromTOML,
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
func (c *chance) date(layout string, of any, zone string) (string, error) {
	when := timeOf(of, time.Time{})
	if when.IsZero() && !isZeroTime(of) {
		now, err := c.now("date")
		if err != nil {
			return "", err
		}
		when = now
	}
	switch zone {
	case "", "UTC", "Local":
		return when.UTC().Format(layout), nil
	}
	return "", fmt.Errorf("the zone is not UTC: others are read from the machine")
}

func isZeroTime(of any) bool {
	switch t := of.(type) {
	case time.Time:
		return true
	case *time.Time:
		return t != nil
	}
	return false
}

// timeOf is the time that a value is, as sprig has it; otherwise another one.
func timeOf(of any, otherwise time.Time) time.Time {
	switch t := of.(type) {
	case time.Time:
		return t
	case *time.Time:
		if t != nil {
			return *t
		}
	case int64:
		return time.Unix(t, 0)
	case int:
		return time.Unix(int64(t), 0)
	case int32:
		return time.Unix(int64(t), 0)
	}
	return otherwise
}

// fromTOML takes dates that name no zone as UTC; the parser takes the zone of the machine.
func fromTOML(text string) map[string]any {
	made := map[string]any{}
	if err := toml.Unmarshal([]byte(text), &made); err != nil {
		made["Error"] = err.Error()
	}
	return inUTC(made).(map[string]any) //nolint:errcheck,forcetypeassert // of the type that it was given
}

func inUTC(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = inUTC(value)
		}
	case []any:
		for i := range v {
			v[i] = inUTC(v[i])
		}
	case []map[string]any:
		for i := range v {
			inUTC(v[i])
		}
	case time.Time:
		if strings.HasSuffix(v.Location().String(), "-local") {
			return time.Date(v.Year(), v.Month(), v.Day(), v.Hour(), v.Minute(), v.Second(), v.Nanosecond(), time.UTC)
		}
	}
	return v
}
