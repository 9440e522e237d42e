// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/satchel-dev/satchel/internal/apply/fieldmanager/schemas"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Field is a field, with everything below it, that is on the cluster and not in the bundle, inside a structure that the
// bundle sets: another member of a union, or another item of a list.
type Field struct {
	path     fieldpath.Path
	Managers []string // none: the API server set a default
}

// String names the field and its managers.
func (f Field) String() string {
	if len(f.Managers) == 0 {
		return f.path.String() + " (a default that no field manager owns)"
	}
	return f.path.String() + " of field manager " + Quoted(f.Managers)
}

// Merged is an object on the cluster together with what a bundle wants of it.
type Merged struct {
	live, desired *typed.TypedValue
	entries       []metav1.ManagedFieldsEntry
	manager       string
	version       string         // the apiVersion of the desired object
	has           *fieldpath.Set // the live object
	lapsed        []Field        // that only our manager owns, and that the bundle does not set any more
	Fields        []Field        // that another manager owns, or no manager
}

// Merge finds the fields that an apply of the desired object would leave as they are. Fields of another deployment, of
// subresources and of the metadata are left out: they are no alternative to what the bundle sets.
func Merge(live, desired *unstructured.Unstructured, manager string) (*Merged, error) {
	m := &Merged{entries: live.GetManagedFields(), manager: manager, version: desired.GetAPIVersion()}
	bare := live.DeepCopy()
	bare.SetManagedFields(nil)
	var wanted *fieldpath.Set
	var err error
	if m.live, err = schemas.Typed(bare); err == nil {
		m.has, err = m.live.ToFieldSet()
	}
	if err == nil {
		m.desired, err = schemas.Typed(desired)
	}
	if err == nil {
		wanted, err = m.desired.ToFieldSet()
	}
	if err != nil {
		return nil, fmt.Errorf("comparing fields by their schema: %w", err)
	}
	return m, m.find(wanted)
}

// owners are the fields of this manager's applies, those that stay (of subresources and of other deployments), and those of other
// managers by their names.
func (m *Merged) owners() (ours, fixed *fieldpath.Set, others map[string]*fieldpath.Set, err error) {
	ours, fixed, others = fieldpath.NewSet(), fieldpath.NewSet(), map[string]*fieldpath.Set{}
	for _, entry := range m.entries {
		set, err := fieldsOf(entry)
		switch {
		case err != nil:
			return nil, nil, nil, err
		case applied(entry, m.manager):
			ours = set
		case entry.Subresource != "" || inventory.IsManager(entry.Manager) && entry.Manager != m.manager:
			fixed = fixed.Union(set)
		case others[entry.Manager] == nil:
			others[entry.Manager] = set
		default:
			others[entry.Manager] = others[entry.Manager].Union(set)
		}
	}
	return ours, fixed, others, nil
}

func (m *Merged) find(wanted *fieldpath.Set) error {
	ours, fixed, others, err := m.owners()
	if err != nil {
		return err
	}
	found := fieldpath.NewSet()
	for path := range m.has.All() {
		root := beside(wanted, path)
		if root == nil || root[0].FieldName == nil || settled[*root[0].FieldName] || found.Has(root) || hasBelow(fixed, root) {
			continue
		}
		found.Insert(root)
		field := Field{path: root}
		for _, name := range slices.Sorted(maps.Keys(others)) {
			if hasBelow(others[name], root) {
				field.Managers = append(field.Managers, name)
			}
		}
		if len(field.Managers) == 0 && hasBelow(ours, root) {
			m.lapsed = append(m.lapsed, field)
			continue
		}
		m.Fields = append(m.Fields, field)
	}
	return nil
}

// settled are the fields at the top of an object that exclude nothing.
var settled = map[string]bool{"apiVersion": true, "kind": true, "metadata": true, "status": true}

// beside is the beginning of a path up to the first part that the wanted fields do not contain; nil if they contain all of it.
func beside(wanted *fieldpath.Set, path fieldpath.Path) fieldpath.Path {
	for i, part := range path {
		below, found := wanted.Children.Get(part)
		if found {
			wanted = below
			continue
		}
		if wanted.Members.Has(part) {
			return nil // owned as a whole
		}
		return path[:i+1].Copy()
	}
	return nil
}

// hasBelow tells whether a set has a path, or anything below it.
func hasBelow(set *fieldpath.Set, path fieldpath.Path) bool {
	for i, part := range path {
		if i == len(path)-1 && set.Members.Has(part) {
			return true
		}
		below, found := set.Children.Get(part)
		if !found {
			return false
		}
		set = below
	}
	return !set.Empty()
}

// below are the paths of the live object at and below the fields.
func (m *Merged) below(fields []Field) *fieldpath.Set {
	set := fieldpath.NewSet()
	for _, field := range fields {
		set.Insert(field.path)
	}
	return set.Union(m.has.Difference(m.has.RecursiveDifference(set)))
}

// Without is what an apply would make of the object if the fields had been ours.
func (m *Merged) Without(fields []Field) (map[string]any, error) {
	merged, err := m.live.RemoveItems(m.below(slices.Concat(fields, m.lapsed))).Merge(m.desired)
	if err != nil {
		return nil, fmt.Errorf("merging the object: %w", err)
	}
	content, _ := merged.AsValue().Unstructured().(map[string]any)
	return content, nil
}

// TakeOver moves the fields from their managers to ours, so that the next apply removes them. An object that is adopted has no fields
// of ours so far.
func (m *Merged) TakeOver(fields []Field) ([]metav1.ManagedFieldsEntry, error) {
	roots := fieldpath.NewSet()
	for _, field := range fields {
		roots.Insert(field.path)
	}
	var entries []metav1.ManagedFieldsEntry
	held := false
	for _, entry := range m.entries {
		set, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}
		switch {
		case applied(entry, m.manager):
			held = true
			set = set.Union(m.below(fields))
		case entry.Subresource == "":
			if set = set.RecursiveDifference(roots); set.Empty() {
				continue
			}
		}
		if entry.FieldsV1, err = fieldsV1(set); err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	if held {
		return entries, nil
	}
	adopted := metav1.ManagedFieldsEntry{
		Manager: m.manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: m.version, FieldsType: "FieldsV1",
	}
	var err error
	adopted.FieldsV1, err = fieldsV1(m.below(fields))
	return append(entries, adopted), err
}

// Suspects are groups of fields that may be why the API server refuses the object, likelier ones first: those nearest to
// what its answer names, and of these the ones that another manager set before defaults.
func (m *Merged) Suspects(refused error) [][]Field {
	var status apierrors.APIStatus
	if !errors.As(refused, &status) || status.Status().Details == nil {
		return nil
	}
	merged, err := m.Without(nil)
	if err != nil {
		return nil
	}
	set := m.has
	if wanted, err := m.desired.ToFieldSet(); err == nil {
		set = set.Union(wanted)
	}
	var named []fieldpath.Path
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != "" && !saysOnlyAPIServer(cause.Field) {
			named = append(named, resolved(set, merged, cause.Field))
		}
	}
	var groups [][]Field
	for up := 0; ; up++ {
		foreign, all, more := m.near(named, up)
		for _, group := range [][]Field{foreign, all} {
			if len(group) > 0 && !slices.ContainsFunc(groups, func(g []Field) bool { return sameFields(g, group) }) {
				groups = append(groups, group)
			}
		}
		if !more {
			return groups
		}
	}
}

// Still are those of the fields that another manager owns, or no manager in this state of the object.
func (m *Merged) Still(fields []Field) []Field {
	return slices.DeleteFunc(slices.Clone(m.Fields), func(f Field) bool {
		return !slices.ContainsFunc(fields, func(g Field) bool { return f.path.Equals(g.path) })
	})
}

// sameFields tells whether two groups name the same fields.
func sameFields(a, b []Field) bool {
	return slices.EqualFunc(a, b, func(a, b Field) bool { return a.path.Equals(b.path) })
}

// saysOnlyAPIServer tells that a cause concerns what a bundle cannot set.
func saysOnlyAPIServer(field string) bool {
	return strings.HasPrefix(field, "metadata") || strings.HasPrefix(field, "status")
}

// near are the fields in the structures that are so many levels above what is named, or that contain it.
func (m *Merged) near(named []fieldpath.Path, up int) (foreign, all []Field, more bool) {
	for _, field := range m.Fields {
		isNear := slices.ContainsFunc(named, func(path fieldpath.Path) bool {
			structure := path[:max(len(path)-up, min(1, len(path)))]
			return beginsWith(field.path, structure) || beginsWith(path, field.path)
		})
		if !isNear {
			continue
		}
		all = append(all, field)
		if len(field.Managers) > 0 {
			foreign = append(foreign, field)
		}
	}
	return foreign, all, slices.ContainsFunc(named, func(path fieldpath.Path) bool { return len(path)-up > 1 })
}

func beginsWith(path, prefix fieldpath.Path) bool {
	return len(path) >= len(prefix) && path[:len(prefix)].Equals(prefix)
}

// resolved is the path that the API server calls spec.ports[0].name, as far as the object has it.
func resolved(set *fieldpath.Set, object any, field string) fieldpath.Path {
	path := fieldpath.Path{}
	for _, part := range strings.FieldsFunc(field, func(c rune) bool { return c == '.' || c == '[' || c == ']' }) {
		e := fieldpath.FieldNameElement(part)
		switch at := object.(type) {
		case map[string]any:
			child, found := at[part]
			if !found {
				return path
			}
			object = child
		case []any:
			var i int
			if _, err := fmt.Sscanf(part, "%d", &i); err != nil || i < 0 || i >= len(at) {
				return path
			}
			var found bool
			if e, found = element(set, at[i]); !found {
				return path
			}
			object = at[i]
		default:
			return path
		}
		path = append(path, e)
		if below, found := set.Children.Get(e); found {
			set = below
		} else {
			set = fieldpath.NewSet()
		}
	}
	return path
}

// WithoutNulls is an object of a built-in kind without the fields that the bundle sets to null: an apply removes those that were
// ours, and the API server would keep a null as a field that has its former value.
func WithoutNulls(object *unstructured.Unstructured) *unstructured.Unstructured {
	if !schemas.Knows(object.GroupVersionKind()) || !hasNull(object.Object) {
		return object
	}
	object = object.DeepCopy()
	dropNulls(object.Object)
	return object
}

func hasNull(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, child := range value {
			if child == nil || hasNull(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, hasNull)
	}
	return false
}

func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, child := range value {
			if child == nil {
				delete(value, name)
				continue
			}
			dropNulls(child)
		}
	case []any:
		for _, child := range value {
			dropNulls(child)
		}
	}
}
