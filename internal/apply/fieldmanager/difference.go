// SPDX-License-Identifier: Apache-2.0

package fieldmanager

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Difference describes how an object differs from what was applied.
type Difference struct {
	inventory.ID
	// Gone: it does not exist.
	Gone bool
	// Fields that are not ours any more, as in .spec.containers[name="web"].image.
	Fields []string
	// Managers that hold such fields now; none when they were removed.
	Managers []string
}

// mostFields bounds the fields of a Difference.
const mostFields = 5

// Explain finds out from an object's metadata which of our fields other managers took or
// removed, and which managers these are. It names fields, never values.
func Explain(ctx context.Context, client *tenant.Client, owner inventory.Owner, object plan.Object) (Difference, error) {
	difference := Difference{ID: object.ID}
	live, err := client.Metadata(ctx, tenant.RefTo(object.ID, object.Resource))
	switch {
	case apierrors.IsNotFound(err):
		difference.Gone = true
		return difference, nil
	case err != nil:
		return difference, fmt.Errorf("looking at %s: %w", object.ID, err)
	}
	difference.explain(live.ManagedFields, owner.Manager(), DesiredWithoutIgnored(object).Object)
	return difference, nil
}

// explain prefers the fields that another manager holds: fields without a manager may also be
// fields that the API server dropped.
func (d *Difference) explain(entries []metav1.ManagedFieldsEntry, manager string, desired map[string]any) {
	fields := identified(desired)
	ours := fieldpath.NewSet()
	for _, entry := range entries {
		if applied(entry, manager) {
			ours = readable(entry)
		}
	}
	if ours.Empty() {
		d.Managers = others(entries, manager)
		return
	}
	missing := lost(ours, fields)
	for _, entry := range entries {
		if entry.Manager == manager {
			continue
		}
		if taken := among(readable(entry), fields, missing); len(taken) > 0 {
			d.Fields = append(d.Fields, taken...)
			d.Managers = append(d.Managers, entry.Manager)
		}
	}
	if len(d.Fields) == 0 {
		d.Fields = missing
	}
	slices.Sort(d.Fields)
	d.Fields = slices.Compact(d.Fields)
	slices.Sort(d.Managers)
	d.Managers = slices.Compact(d.Managers)
}

// readable is fieldsOf for an explanation, which says less where an entry cannot be read; the API server writes no such entry.
func readable(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	set, err := fieldsOf(entry)
	if err != nil {
		return fieldpath.NewSet()
	}
	return set
}

// identified leaves out the fields that identify an object, which have no manager.
func identified(desired map[string]any) map[string]any {
	fields := map[string]any{}
	for name, value := range desired {
		if name != "apiVersion" && name != "kind" {
			fields[name] = value
		}
	}
	if metadata, ok := desired["metadata"].(map[string]any); ok {
		some := map[string]any{}
		for name, value := range metadata {
			if name != "name" && name != "namespace" {
				some[name] = value
			}
		}
		fields["metadata"] = some
	}
	return fields
}

// others are the managers that wrote the object itself last: where our entry is gone, one
// of them removed it.
func others(entries []metav1.ManagedFieldsEntry, manager string) []string {
	var names []string
	for i := range entries {
		if entries[i].Manager != manager && entries[i].Subresource == "" && entries[i].Manager != strippedManager {
			names = append(names, entries[i].Manager)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// String is the difference for people.
func (d Difference) String() string {
	switch {
	case d.Gone:
		return d.ID.String() + " was deleted"
	case len(d.Fields) == 0:
		return d.ID.String() + ": its managed fields were removed"
	}
	fields := d.Fields
	more := ""
	if len(fields) > mostFields {
		more = fmt.Sprintf(" and %d more", len(fields)-mostFields)
		fields = fields[:mostFields]
	}
	text := fmt.Sprintf("%s: %s%s", d.ID, strings.Join(fields, ", "), more)
	if len(d.Managers) == 0 {
		return text + " removed"
	}
	return text + " changed by " + Quoted(d.Managers)
}

// Quoted writes the names of managers for people.
func Quoted(managers []string) string {
	words := make([]string, 0, len(managers))
	for _, manager := range managers {
		words = append(words, strconv.Quote(manager))
	}
	return strings.Join(words, ", ")
}
