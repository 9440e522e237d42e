// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// annotate puts labels and annotations on every object; not on Pods of workloads, and not into selectors.
// Values of labels may contain variables if a processor after this one replaces these.
func (r *run) annotate(field string, m Metadata, variablesFollow bool) {
	for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
		r.checkKey(field+".labels", key)
		wrong := validation.IsValidLabelValue(m.Labels[key])
		where := fmt.Sprintf("%s.labels[%q]", field, shorten(key))
		switch {
		case len(wrong) == 0:
		case variablesFollow && strings.Contains(m.Labels[key], "${"):
			r.checks = append(r.checks, labelCheck{field: where, key: key})
		default:
			r.refuse(where, "the value is no value of a label: "+wrong[0], "correct it")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
		r.checkKey(field+".annotations", strings.ToLower(key)) // as the API server does
	}
	if len(r.problems) > 0 {
		return
	}
	for _, e := range r.left() {
		r.merge(e, "labels", m.Labels)
		r.merge(e, "annotations", m.Annotations)
	}
}

// labelCheck is a label of which the value is known only after the variables in it are replaced.
type labelCheck struct{ field, key string }

// checkLabels checks these labels at the end. It quotes no value: it may come from a Secret.
func (r *run) checkLabels() {
	for _, check := range r.checks {
		for _, e := range r.left() {
			if len(validation.IsValidLabelValue(e.Object.GetLabels()[check.key])) > 0 {
				r.refuseAt(e, check.field+": with its variables, the value is no value of a label", "correct it, or the values of the variables")
				return
			}
		}
	}
}

func (r *run) checkKey(field, key string) {
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		r.refuse(fmt.Sprintf("%s[%q]", field, shorten(key)), "the key is none of a label or annotation: "+wrong[0], "correct it")
	}
}

func (r *run) merge(e *entry, field string, common map[string]string) {
	if len(common) == 0 {
		return
	}
	metadata, ok := e.Object.Object["metadata"].(map[string]any)
	if !ok {
		return // reported as an object without a name
	}
	entries, ok := metadata[field].(map[string]any)
	switch {
	case !ok && metadata[field] != nil:
		return // reported as no mapping
	case !ok:
		entries = map[string]any{}
		metadata[field] = entries
	}
	for key, value := range common {
		entries[key] = value
	}
}
