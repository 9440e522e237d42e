// SPDX-License-Identifier: Apache-2.0

package listmap

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxFound bounds what is reported of one object.
const maxFound = 10

// envVar is the type of environment variables, of which the kubelet takes the last one.
const envVar = "io.k8s.api.core.v1.EnvVar"

// Result is what was found in an object.
type Result struct {
	// Faults are lists with items that have the same key.
	Faults []string
	// Warnings say which items were removed.
	Warnings []string
}

// Resolve looks at all lists of an object that have keys. Of items that are equal the last one stays, and of environment variables
// with the same name the last one, as for the kubelet: with a warning each. Other items with the same key are faults. Neither
// quotes values but keys. Kinds that the table does not have are not looked at. It takes time in proportion to the object.
func Resolve(object *unstructured.Unstructured) Result {
	kind, known := table().kinds[object.GroupVersionKind()]
	if !known {
		return Result{}
	}
	w := walk{}
	w.mapping(object.Object, kind, "")
	return w.result
}

// walk is that through one object.
type walk struct{ result Result }

func (w *walk) mapping(value any, of, at string) {
	fields, is := value.(map[string]any)
	if !is {
		return
	}
	known := table().types[of]
	for _, name := range slices.Sorted(maps.Keys(known)) {
		value, there := fields[name]
		if !there {
			continue
		}
		f, where := known[name], strings.TrimPrefix(at+"."+name, ".")
		switch f.how {
		case "type":
			w.mapping(value, f.of, where)
		case "values":
			w.values(value, f.of, where)
		case "items":
			w.items(value, f, where)
		case "keyed":
			if list, is := value.([]any); is {
				fields[name] = w.unique(list, f, where)
			}
			w.items(fields[name], f, where)
		}
	}
}

func (w *walk) values(value any, of, at string) {
	entries, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		w.mapping(entries[name], of, at+"["+name+"]")
	}
}

func (w *walk) items(value any, f field, at string) {
	list, _ := value.([]any)
	for i, item := range list {
		where := fmt.Sprintf("%s[%d]", at, i)
		if named, is := item.(map[string]any); is && f.how == "keyed" {
			if name, is := named["name"].(string); is {
				where = fmt.Sprintf("%s[%s]", at, shorten(name))
			}
		}
		w.mapping(item, f.of, where)
	}
}

// unique returns the list without the items that give way to a later one.
func (w *walk) unique(list []any, f field, at string) []any {
	last := make(map[string]int, len(list))
	removed := map[int]bool{}
	reported := map[string]bool{}
	for i, item := range list {
		id := f.keyOf(item)
		if id == "" {
			continue // the API server says what is wrong with it
		}
		earlier, double := last[id]
		last[id] = i
		if !double {
			continue
		}
		switch {
		case reflect.DeepEqual(list[earlier], item):
			removed[earlier] = true
			w.warn(reported, id, "%s has %s twice, with the same content: one is left out", at, id)
		case f.of == envVar && !refersTo(list[earlier+1:i+1], item):
			removed[earlier] = true
			w.warn(reported, id, "%s has %s twice: the last one counts, as for the kubelet", at, id)
		default:
			w.fail(reported, id, "%s has %s twice", at, id)
		}
	}
	if len(removed) == 0 {
		return list
	}
	kept := make([]any, 0, len(list)-len(removed))
	for i, item := range list {
		if !removed[i] {
			kept = append(kept, item)
		}
	}
	return kept
}

// keyOf names the key of an item for people; "" where it has none.
func (f field) keyOf(item any) string {
	if len(f.keys) == 0 {
		switch item.(type) {
		case map[string]any, []any, nil:
			return ""
		}
		return shorten(fmt.Sprintf("%q", fmt.Sprint(item)))
	}
	fields, is := item.(map[string]any)
	if !is {
		return ""
	}
	var parts []string
	for _, k := range f.keys {
		value := fields[k.name]
		if value == nil {
			if !k.hasDefault {
				continue
			}
			value = k.otherwise
		}
		text := fmt.Sprint(value)
		if text == "" {
			text = `""`
		}
		parts = append(parts, k.name+" "+text)
	}
	return strings.Join(parts, ", ")
}

// refersTo tells whether one of the variables uses the value of an earlier one with the same name: without it, that would change.
func refersTo(variables []any, item any) bool {
	named, _ := item.(map[string]any)
	name, _ := named["name"].(string)
	return slices.ContainsFunc(variables, func(variable any) bool {
		fields, _ := variable.(map[string]any)
		value, _ := fields["value"].(string)
		return strings.Contains(value, "$("+name+")")
	})
}

func (w *walk) warn(reported map[string]bool, id, format string, args ...any) {
	if !reported[id] && len(w.result.Warnings) < maxFound {
		w.result.Warnings = append(w.result.Warnings, fmt.Sprintf(format, args...))
	}
	reported[id] = true
}

func (w *walk) fail(reported map[string]bool, id, format string, args ...any) {
	if !reported["fault "+id] && len(w.result.Faults) < maxFound {
		w.result.Faults = append(w.result.Faults, fmt.Sprintf(format, args...))
	}
	reported["fault "+id] = true
}

// shorten bounds what is quoted of an object.
func shorten(text string) string {
	const most = 100
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
