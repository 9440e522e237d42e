// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/satchel-dev/satchel/internal/apply/plan/ignore"
)

// fieldsOf are the fields of a managedFields entry. A field without anything below it is owned as a whole.
func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	if entry.FieldsV1 == nil {
		return set, nil
	}
	if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
		return nil, fmt.Errorf("reading the managed fields of %q: %w", entry.Manager, err)
	}
	return set, nil
}

func fieldsV1(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	raw, err := set.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("writing managed fields: %w", err)
	}
	return metav1.NewFieldsV1(string(raw)), nil
}

// element finds the item of a list in a set, where it is identified by its keys or its value.
func element(set *fieldpath.Set, item any) (fieldpath.PathElement, bool) {
	content := value.NewValueInterface(item)
	same := func(e fieldpath.PathElement) bool {
		return e.Value != nil && value.Equals(*e.Value, content) || e.Key != nil && hasKeys(item, *e.Key)
	}
	for e := range set.Members.All() {
		if same(e) {
			return e, true
		}
	}
	for e := range set.Children.All() {
		if same(e) {
			return e, true
		}
	}
	return fieldpath.PathElement{}, false
}

// hasKeys tells whether an item is the one with these keys; keys that it does not
// have are defaults.
func hasKeys(item any, keys value.FieldList) bool {
	fields, _ := item.(map[string]any)
	same := 0
	for _, key := range keys {
		have, found := fields[key.Name]
		if found && !value.Equals(value.NewValueInterface(have), key.Value) {
			return false
		}
		if found {
			same++
		}
	}
	return same > 0
}

// pathOf is what a pointer into an object leads to, as the set writes it; nil where that is no path of the set.
func pathOf(set *fieldpath.Set, object any, pointer ignore.Pointer) fieldpath.Path {
	var path fieldpath.Path
	for _, part := range pointer {
		e := fieldpath.FieldNameElement(part)
		switch at := object.(type) {
		case map[string]any:
			object = at[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			var found bool
			if e, found = element(set, at[i]); !found {
				return nil
			}
			object = at[i]
		default:
			return nil
		}
		path, set = append(path, e), set.WithPrefix(e)
	}
	return path
}

// visitFields visits the fields of a value, down to where the set has nothing below: in the set, or not.
func visitFields(set *fieldpath.Set, fields any, path string, visit func(at string, field any, owned bool)) {
	descend := func(e fieldpath.PathElement, at string, field any) {
		if below, found := set.Children.Get(e); found {
			visitFields(below, field, at, visit)
			return
		}
		visit(at, field, set.Members.Has(e))
	}
	switch fields := fields.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			descend(fieldpath.FieldNameElement(name), path+"."+name, fields[name])
		}
	case []any:
		for i, item := range fields {
			e, _ := element(set, item)
			descend(e, path+itemText(i, item), item)
		}
	}
}

// lost lists the paths of an object that are not in a set, written as in .spec.containers[name="web"].image.
func lost(set *fieldpath.Set, object map[string]any) []string {
	var paths []string
	visitFields(set, object, "", func(at string, field any, owned bool) {
		if !owned && !isEmpty(field) {
			paths = append(paths, leaves(field, at)...)
		}
	})
	return paths
}

// among returns those of the paths at or below which the set has something.
func among(set *fieldpath.Set, object map[string]any, paths []string) []string {
	var has []string
	visitFields(set, object, "", func(at string, _ any, owned bool) {
		for _, path := range paths {
			if rest, below := strings.CutPrefix(at, path); owned && below && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				has = append(has, path)
			}
		}
	})
	return has
}

// leaves are the fields of a value that are no mappings.
func leaves(field any, path string) []string {
	fields, ok := field.(map[string]any)
	if !ok {
		return []string{path}
	}
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		paths = append(paths, leaves(fields[name], path+"."+name)...)
	}
	return paths
}

// itemText writes a list item as users know it.
func itemText(i int, item any) string {
	fields, _ := item.(map[string]any)
	if name, ok := fields["name"].(string); ok {
		return fmt.Sprintf("[name=%q]", name)
	}
	return fmt.Sprintf("[%d]", i)
}

func isEmpty(field any) bool {
	switch field := field.(type) {
	case nil:
		return true
	case map[string]any:
		return len(field) == 0
	case []any:
		return len(field) == 0
	}
	return false
}
