// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager/schemas"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/autoscaling"
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
// are: they are all fields of its spec outside of lists.
func Leaving(entries []metav1.ManagedFieldsEntry, desired *unstructured.Unstructured, manager string, adopted bool) []fieldpath.Path {
	if adopted {
		var err error
		if entries, err = HandOver(entries, manager); err != nil {
			return nil // the adoption fails as well, and says it
		}
	}
	var leaving []fieldpath.Path
	for _, entry := range entries {
		if applied(entry, manager) {
			leaving = append(leaving, unset(entry, desired)...)
		}
	}
	for _, entry := range entries {
		if len(leaving) > 0 && !applied(entry, manager) {
			leaving = slices.DeleteFunc(leaving, readable(entry).Has)
		}
	}
	return leaving
}

// unset are the fields of an entry that autoscalers may set and the desired object does not.
func unset(entry metav1.ManagedFieldsEntry, desired *unstructured.Unstructured) []fieldpath.Path {
	builtIn := BuiltIn(desired)
	if builtIn && !mayScale(entry) {
		return nil
	}
	var paths []fieldpath.Path
	for path := range readable(entry).All() {
		candidate := !builtIn && isPlain(path) || autoscaling.MaySet(path, autoscaling.Replicas)
		if candidate && !Has(desired, path) && hasParent(desired, path) {
			paths = append(paths, path.Copy())
		}
	}
	return paths
}

// Regained are the fields that were handed over, and that the desired object sets again.
func Regained(entries []metav1.ManagedFieldsEntry, desired *unstructured.Unstructured) []fieldpath.Path {
	var regained []fieldpath.Path
	for _, entry := range entries {
		if !applied(entry, inventory.HandoverManager) {
			continue
		}
		for path := range readable(entry).All() {
			if Has(desired, path) {
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
