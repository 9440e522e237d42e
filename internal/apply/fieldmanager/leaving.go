// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager/schemas"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/autoscaling"
	"github.com/satchel-dev/satchel/internal/apply/plan/ignore"
)

// Scaled tells whether the controller of an autoscaler has set the replicas of an object.
func Scaled(entries []metav1.ManagedFieldsEntry) bool {
	for _, entry := range entries {
		if entry.Subresource == "scale" && autoscaling.IsManager(entry.Manager) {
			return true
		}
	}
	return false
}

// Leaving are the fields of our manager, and of no other, that the desired object does not set and that autoscalers may set.
// adopted: the fields of the former owners are ours by then. Of a custom resource it is not known here which field its replicas
// are: they are all fields of its spec outside of lists. Fields that the spec ignores are among them, whatever they are.
func Leaving(entries []metav1.ManagedFieldsEntry, object plan.Object, manager string, adopted bool) []fieldpath.Path {
	if adopted {
		var err error
		if entries, err = HandOver(entries, manager); err != nil {
			return nil // the adoption fails as well, and says it
		}
	}
	var leaving []fieldpath.Path
	for _, entry := range entries {
		if applied(entry, manager) {
			leaving = append(leaving, unset(entry, object)...)
		}
	}
	for _, entry := range entries {
		if len(leaving) > 0 && !applied(entry, manager) {
			leaving = slices.DeleteFunc(leaving, readable(entry).Has)
		}
	}
	return leaving
}

// unset are the fields of an entry that autoscalers may set, or that are ignored, and that the desired object does not set.
func unset(entry metav1.ManagedFieldsEntry, object plan.Object) []fieldpath.Path {
	desired := object.Desired
	builtIn := BuiltIn(desired)
	if builtIn && len(object.Ignored) == 0 && !mayScale(entry) {
		return nil
	}
	var paths []fieldpath.Path
	set := readable(entry)
	for path := range set.All() {
		candidate := !builtIn && isPlain(path) || autoscaling.MaySet(path, autoscaling.Replicas) || IsIgnored(path, object)
		if candidate && !Has(desired, path) && hasParent(desired, path) {
			paths = append(paths, path.Copy())
		}
	}
	return paths
}

// IsIgnored tells whether the spec ignores a field.
func IsIgnored(path fieldpath.Path, object plan.Object) bool {
	return slices.ContainsFunc(object.Ignored, func(pointer ignore.Pointer) bool { return leadsTo(pointer, path, object.Desired.Object) })
}

// leadsTo tells whether a pointer leads to a field or to what contains it. The items of lists are those of the object.
func leadsTo(pointer ignore.Pointer, path fieldpath.Path, object any) bool {
	if len(pointer) > len(path) {
		return false
	}
	for i, part := range pointer {
		e := path[i]
		if e.FieldName != nil {
			if *e.FieldName != part {
				return false
			}
			object, _ = child(object, e)
			continue
		}
		items, _ := object.([]any)
		at, err := strconv.Atoi(part)
		if err != nil || at < 0 || at >= len(items) {
			return false
		}
		var found bool
		if object, found = child(items[at:at+1], e); !found {
			return false
		}
	}
	return true
}

// Regained are the fields that were handed over, and that the desired object sets again, or of list items that it does not have any
// more: an item would stay for the sake of its field.
func Regained(entries []metav1.ManagedFieldsEntry, desired *unstructured.Unstructured) []fieldpath.Path {
	var regained []fieldpath.Path
	for _, entry := range entries {
		if !applied(entry, inventory.HandoverManager) {
			continue
		}
		for path := range readable(entry).All() {
			if Has(desired, path) || !hasParent(desired, path) {
				regained = append(regained, path.Copy())
			}
		}
	}
	return regained
}

// mayScale tells, before an entry is read, whether it can have fields of autoscalers.
func mayScale(entry metav1.ManagedFieldsEntry) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	raw := entry.FieldsV1.GetRawBytes()
	return bytes.Contains(raw, []byte(`"f:replicas"`)) || bytes.Contains(raw, []byte(`"f:resources"`))
}

// isPlain tells whether a path leads to a field of the spec outside of lists.
func isPlain(path fieldpath.Path) bool {
	for _, e := range path {
		if e.FieldName == nil {
			return false
		}
	}
	return len(path) > 1 && *path[0].FieldName == "spec"
}

// hasParent tells whether the desired object still has the list item that contains a field.
func hasParent(desired *unstructured.Unstructured, path fieldpath.Path) bool {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].Key != nil {
			return Has(desired, path[:i+1])
		}
	}
	return true
}

// BuiltIn tells whether the kind of an object is built into Kubernetes.
func BuiltIn(object *unstructured.Unstructured) bool { return schemas.Knows(object.GroupVersionKind()) }

// Has tells whether an object has a field.
func Has(object *unstructured.Unstructured, path fieldpath.Path) bool {
	return hasPath(object, path.String())
}

// ValueAt is the value of a field of an object.
func ValueAt(object *unstructured.Unstructured, path fieldpath.Path) (any, bool) {
	var at any = object.Object
	for _, e := range path {
		var found bool
		if at, found = child(at, e); !found {
			return nil, false
		}
	}
	return at, true
}

func child(parent any, e fieldpath.PathElement) (any, bool) {
	switch parent := parent.(type) {
	case map[string]any:
		if e.FieldName == nil {
			return nil, false
		}
		at, found := parent[*e.FieldName]
		return at, found
	case []any:
		for i, item := range parent {
			if e.Key != nil && hasKeys(item, *e.Key) || e.Index != nil && *e.Index == i || e.Value != nil && value.Equals(*e.Value, value.NewValueInterface(item)) {
				return item, true
			}
		}
	}
	return nil, false
}

// Together is the desired object with fields of the live one: what an apply makes of it that keeps these fields.
func Together(desired, live *unstructured.Unstructured, kept *fieldpath.Set) (*unstructured.Unstructured, error) {
	bare := live.DeepCopy()
	bare.SetManagedFields(nil)
	has, err := schemas.Typed(bare)
	if err != nil {
		return nil, fmt.Errorf("reading %s by its schema: %w", strings.ToLower(live.GetKind()), err)
	}
	wanted, err := schemas.Typed(desired)
	if err != nil {
		return nil, fmt.Errorf("reading %s by its schema: %w", strings.ToLower(desired.GetKind()), err)
	}
	merged, err := has.ExtractItems(kept, typed.WithAppendKeyFields()).Merge(wanted)
	if err != nil {
		return nil, fmt.Errorf("merging %s: %w", strings.ToLower(desired.GetKind()), err)
	}
	content, _ := merged.AsValue().Unstructured().(map[string]any)
	return &unstructured.Unstructured{Object: content}, nil
}

// Dropped is the content of a live object without some fields.
func Dropped(live *unstructured.Unstructured, fields []autoscaling.Leaving) (map[string]any, error) {
	bare := live.DeepCopy()
	bare.SetManagedFields(nil)
	has, err := schemas.Typed(bare)
	if err != nil {
		return nil, fmt.Errorf("reading %s by its schema: %w", strings.ToLower(live.GetKind()), err)
	}
	paths := fieldpath.NewSet()
	for _, field := range fields {
		paths.Insert(field.Path)
	}
	content, _ := has.RemoveItems(paths).AsValue().Unstructured().(map[string]any)
	return content, nil
}
