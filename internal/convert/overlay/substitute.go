// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"
	"maps"
	"slices"

	"github.com/satchel-dev/satchel/internal/convert/overlay/variables"
)

// Annotations by which an object is left as it is, with the value "disabled": Flux's, which is a label there, too, and
// Satchel's.
const (
	fluxSubstitute    = "kustomize.toolkit.fluxcd.io/substitute"
	satchelSubstitute = "satchel.dev/substitute"
	disabled          = "disabled"
)

// substitute replaces the variables in all texts of the objects. A text that is read from YAML stays one text, whatever a
// value contains: no value can change what an object consists of.
func (r *run) substitute(field string, v Variables) {
	for _, name := range slices.Sorted(maps.Keys(v.Given)) {
		if !variables.IsName(name) {
			r.refuse(fmt.Sprintf("%s.values[%q]", field, shorten(name)), "this is no name of a variable",
				"use letters, digits and underscores, no digit first")
		}
	}
	if len(r.problems) > 0 {
		return
	}
	values := variables.New(v.Given, v.Read, r.bundle.Limits.TotalBytes)
	for _, e := range r.left() {
		if !r.substituted(e) {
			continue
		}
		faults := values.Replace(e.Object)
		if values.Exceeded() {
			r.refuseSize(e, field, "the objects up to here have more than %d bytes", r.bundle.Limits.TotalBytes)
			return
		}
		for _, fault := range faults {
			r.refuseAt(e, field+": "+fault.Path+": "+fault.Message,
				"give the variable a value, write $${ for what is no variable, or annotate the object with "+satchelSubstitute+": "+disabled)
		}
	}
	r.refuseCollisions(field)
	for _, name := range slices.Sorted(maps.Keys(v.Given)) {
		switch {
		case values.Used(name):
			r.used[name] = true
		case !r.used[name] && len(r.problems) == 0: // a processor before this one has replaced the others
			r.warn("%s.values: no object has the variable %s", field, name)
		}
	}
}

func (r *run) substituted(e *entry) bool {
	annotations, labels := e.Object.GetAnnotations(), e.Object.GetLabels()
	return annotations[fluxSubstitute] != disabled && labels[fluxSubstitute] != disabled && annotations[satchelSubstitute] != disabled
}
