// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/pattern"
)

// matcher matches one part of an identity.
type matcher func(string) bool

// matcherOf reads a regular expression for the whole of a text, within the budget of all targets.
func matcherOf(expression string, budget *pattern.Budget) (matcher, error) {
	if expression == "" {
		return func(string) bool { return true }, nil
	}
	compiled, err := pattern.CompileWhole(expression, budget)
	if err != nil {
		return nil, err
	}
	return compiled.MatchString, nil
}

// target is a Selector that was read.
type target struct {
	group, version, kind, namespace, name matcher
	labels, annotations                   labels.Selector
}

func newTarget(s Selector, budget *pattern.Budget) (*target, error) {
	t := &target{}
	for _, part := range []struct {
		field, expression string
		into              *matcher
	}{
		{"kind", s.Kind, &t.kind}, {"name", s.Name, &t.name}, {"namespace", s.Namespace, &t.namespace},
		{"group", s.Group, &t.group}, {"version", s.Version, &t.version},
	} {
		made, err := matcherOf(part.expression, budget)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.field, err)
		}
		*part.into = made
	}
	var err error
	if t.labels, err = labels.Parse(s.LabelSelector); err != nil {
		return nil, fmt.Errorf("labelSelector cannot be read: %w", err)
	}
	if t.annotations, err = labels.Parse(s.AnnotationSelector); err != nil {
		return nil, fmt.Errorf("annotationSelector cannot be read: %w", err)
	}
	return t, nil
}

// CheckTargets checks the targets of patches, within one budget for their patterns. The error names the field.
func CheckTargets(o Options) error {
	budget := pattern.NewBudget()
	for i, p := range o.Processors {
		if p.Patch == nil || p.Patch.Target == nil {
			continue
		}
		if _, err := newTarget(*p.Patch.Target, budget); err != nil {
			return fmt.Errorf("spec.processors[%d].patch.target: %w", i, err)
		}
	}
	return nil
}

// selects tells whether an object is meant: by what the processors before have made of it. Of patches that follow one another,
// each also selects objects by what they were before the first of these, as in kustomize.
func (t *target) selects(e *entry) bool {
	return (t.is(e.now) || e.now != e.before && t.is(e.before)) && t.version(e.Object.GroupVersionKind().Version) &&
		(t.labels.Empty() || t.labels.Matches(labels.Set(e.Object.GetLabels()))) &&
		(t.annotations.Empty() || t.annotations.Matches(labels.Set(e.Object.GetAnnotations())))
}

func (t *target) is(id manifest.ID) bool {
	return t.kind(id.Kind) && t.name(id.Name) && t.group(id.Group) && t.namespace(id.Namespace)
}

// describe says for people what a selector selects.
func describe(s *Selector) string {
	var parts []string
	for _, part := range [][2]string{
		{"group", s.Group}, {"version", s.Version}, {"kind", s.Kind}, {"namespace", s.Namespace}, {"name", s.Name},
		{"labels", s.LabelSelector}, {"annotations", s.AnnotationSelector},
	} {
		if part[1] != "" {
			parts = append(parts, part[0]+" "+shorten(part[1]))
		}
	}
	if len(parts) == 0 {
		return "any object"
	}
	return strings.Join(parts, ", ")
}

// shorten bounds what a message quotes of the options.
func shorten(text string) string {
	const most = 120
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func kindOf(group, kind string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: kind} }
