// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
func (r *run) substitute() {
	if r.Substitution == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.Substitution.Given)) {
		if !Variable(name) {
			r.refuse(fmt.Sprintf("spec.postBuild.substitute[%q]", shorten(name)), "this is no name of a variable",
				"use letters, digits and underscores, no digit first")
		}
	}
	if len(r.problems) > 0 {
		return
	}
	v := &variables{given: r.Substitution.Given, read: r.Substitution.Read, used: map[string]bool{}}
	for _, e := range r.left() {
		if r.substituted(e) {
			s := substitution{run: r, variables: v, entry: e}
			s.object()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Substitution.Given)) {
		if !v.used[name] && len(r.problems) == 0 {
			r.warn("spec.postBuild.substitute: no object has the variable %s", name)
		}
	}
}

func (r *run) substituted(e *entry) bool {
	annotations, labels := e.Object.GetAnnotations(), e.Object.GetLabels()
	return annotations[fluxSubstitute] != disabled && labels[fluxSubstitute] != disabled && annotations[satchelSubstitute] != disabled
}

// substitution is that of one object.
type substitution struct {
	*run
	variables *variables
	entry     *entry
	failed    int
}

// mostFaults bounds what is said about one object.
const mostFaults = 10

func (s *substitution) object() {
	gvk := s.entry.Object.GroupVersionKind()
	fields := s.entry.Object.Object
	shape := shapeOf(gvk)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if gvk.Kind == "CustomResourceDefinition" && key == "spec" {
			s.crd(fields)
			continue
		}
		fields[key] = s.value(fields[key], "."+key, shape.fieldOf(key))
	}
}

// crd leaves the schemas of a CRD as they are: they document, and describe what looks like
// variables of others.
func (s *substitution) crd(fields map[string]any) {
	spec, _ := fields["spec"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(spec)) {
		if key != "versions" && key != "validation" {
			spec[key] = s.value(spec[key], ".spec."+key, nil)
		}
	}
}

// value replaces variables in a value and in all that it contains.
func (s *substitution) value(value any, at string, shape *shape) any {
	switch v := value.(type) {
	case map[string]any:
		return s.mapping(v, at, shape)
	case []any:
		for i, item := range v {
			v[i] = s.value(item, at+"["+strconv.Itoa(i)+"]", shape.item())
		}
	case string:
		return s.text(v, at, shape)
	}
	return value
}

func (s *substitution) mapping(fields map[string]any, at string, shape *shape) any {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		where := at + step(key)
		fields[key] = s.value(fields[key], where, shape.field(key))
		if !strings.Contains(key, "${") {
			continue
		}
		renamed, err := s.expand(key)
		if err != nil {
			s.fail(where, "in the key, "+err.Error())
			continue
		}
		if _, double := fields[renamed]; double && renamed != key {
			s.fail(where, "with its variables, the key is the same as another one")
			continue
		}
		value := fields[key]
		delete(fields, key)
		fields[renamed] = value
	}
	return fields
}

// plainStep is a key that needs no quotes in a path.
var plainStep = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func step(key string) string {
	if plainStep.MatchString(key) {
		return "." + key
	}
	return fmt.Sprintf("[%q]", shorten(key))
}

func (s *substitution) expand(text string) (string, error) {
	out, _, err := s.variables.expand(text, 0)
	return out, err
}

// text replaces the variables of one text, and makes a number or a boolean of it where the field wants one.
func (s *substitution) text(text, at string, shape *shape) any {
	if !strings.Contains(text, "${") {
		return text
	}
	out, whole, err := s.variables.expand(text, 0)
	if err != nil {
		s.fail(at, err.Error())
		return text
	}
	value, wanted := shape.read(out, whole)
	if wanted != "" {
		s.fail(at, "the field has to be "+wanted+", and with its variables it is none")
	}
	return value
}

func (s *substitution) fail(at, message string) {
	if s.failed++; s.failed > mostFaults {
		return
	}
	s.refuseAt(s.entry, "spec.postBuild: "+strings.TrimPrefix(at, ".")+": "+message,
		"give the variable a value, write $${ for what is no variable, or annotate the object with "+satchelSubstitute+": "+disabled)
}
