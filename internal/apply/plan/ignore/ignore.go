// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/pattern"
)

// Rule lets other managers change fields of some objects.
type Rule struct {
	Paths  []string // JSON pointers
	Target Selector
}

// Selector selects objects; an empty part selects all. Group, Version, Kind,
// Namespace and Name are regular expressions for the whole value.
type Selector struct {
	Group, Version, Kind, Namespace, Name string
	LabelSelector, AnnotationSelector     string
}

// Rules are compiled rules. The zero value ignores nothing.
type Rules struct {
	rules  []compiledRule
	budget *pattern.Budget
}

type compiledRule struct {
	pointers            []Pointer
	identity            []identityPattern
	labels, annotations labels.Selector
}

// identityPattern matches one part of an object's identity.
type identityPattern struct {
	part    string // as target calls it
	pattern *pattern.Pattern
}

// Pointer is a JSON pointer in its parts.
type Pointer []string

// New compiles rules within one budget; its error names the invalid one.
func New(rules []Rule) (Rules, error) {
	ignore := Rules{budget: pattern.NewBudget()}
	for i, rule := range rules {
		compiled, err := rule.compile(ignore.budget)
		if err != nil {
			return Rules{}, fmt.Errorf("spec.drift.ignore[%d].%w", i, err)
		}
		ignore.rules = append(ignore.rules, compiled)
	}
	return ignore, nil
}

func (r Rule) compile(budget *pattern.Budget) (compiledRule, error) {
	var compiled compiledRule
	for _, path := range r.Paths {
		if !strings.HasPrefix(path, "/") {
			return compiledRule{}, fmt.Errorf("paths: %q is no JSON pointer: it has to begin with /", path)
		}
		parts := strings.Split(path[1:], "/")
		for i := range parts {
			parts[i] = strings.ReplaceAll(strings.ReplaceAll(parts[i], "~1", "/"), "~0", "~")
		}
		if identifies(parts) {
			return compiledRule{}, fmt.Errorf("paths: %q says what an object is, and cannot be given to others", path)
		}
		compiled.pointers = append(compiled.pointers, parts)
	}
	for _, part := range [][2]string{
		{"group", r.Target.Group}, {"version", r.Target.Version}, {"kind", r.Target.Kind}, {"namespace", r.Target.Namespace}, {"name", r.Target.Name},
	} {
		if part[1] == "" {
			continue
		}
		expression, err := pattern.CompileWhole(part[1], budget)
		if err != nil {
			return compiledRule{}, fmt.Errorf("target.%s: %w", part[0], err)
		}
		compiled.identity = append(compiled.identity, identityPattern{part[0], expression})
	}
	var err error
	if compiled.labels, err = labels.Parse(r.Target.LabelSelector); err != nil {
		return compiledRule{}, fmt.Errorf("target.labelSelector: %w", err)
	}
	if compiled.annotations, err = labels.Parse(r.Target.AnnotationSelector); err != nil {
		return compiledRule{}, fmt.Errorf("target.annotationSelector: %w", err)
	}
	return compiled, nil
}

// identifies tells whether a pointer leads to a field that identifies an object or its owner.
func identifies(p Pointer) bool {
	switch p[0] {
	case "apiVersion", "kind":
		return true
	case "metadata":
		return len(p) == 1 || p[1] == "name" || p[1] == "namespace" ||
			p[1] == "labels" && (len(p) == 2 || p[2] == inventory.LabelDeployment || p[2] == inventory.LabelNamespace)
	}
	return false
}

// Of returns the pointers of all rules for an object. It fails, with a *pattern.Error, when the rules match more than their
// budget allows.
func (g Rules) Of(object *unstructured.Unstructured) ([]Pointer, error) {
	var pointers []Pointer
	for i, rule := range g.rules {
		selects, err := rule.selects(object, g.budget)
		if err != nil {
			return nil, fmt.Errorf("spec.drift.ignore[%d].%w", i, err)
		}
		if selects {
			pointers = append(pointers, rule.pointers...)
		}
	}
	return pointers, nil
}

func (r compiledRule) selects(object *unstructured.Unstructured, budget *pattern.Budget) (bool, error) {
	for _, part := range r.identity {
		matches, err := budget.Match(part.pattern, identityPart(object, part.part))
		if err != nil {
			return false, fmt.Errorf("target.%s: %w", part.part, err)
		}
		if !matches {
			return false, nil
		}
	}
	return r.labels.Matches(labels.Set(object.GetLabels())) && r.annotations.Matches(labels.Set(object.GetAnnotations())), nil
}

func identityPart(object *unstructured.Unstructured, part string) string {
	switch part {
	case "group":
		return object.GroupVersionKind().Group
	case "version":
		return object.GroupVersionKind().Version
	case "kind":
		return object.GetKind()
	case "namespace":
		return object.GetNamespace()
	default:
		return object.GetName()
	}
}

// Without copies an object without the fields that pointers lead to, and without
// mappings that are empty then. Where no pointer leads to a field it returns the object itself, and false.
func Without(object *unstructured.Unstructured, pointers []Pointer) (*unstructured.Unstructured, bool) {
	taken := false
	for _, pointer := range pointers {
		taken = taken || leads(object.Object, pointer)
	}
	if !taken {
		return object, false
	}
	bare := object.DeepCopy()
	for _, pointer := range pointers {
		take(bare.Object, pointer)
	}
	compact(bare.Object)
	return bare, true
}

// taken is the placeholder of a removed list item until all are removed: the others keep
// their indexes.
type taken struct{}

// leads tells whether a pointer leads to a field.
func leads(value any, pointer Pointer) bool {
	if len(pointer) == 0 {
		return true
	}
	child, found := step(value, pointer[0])
	return found && leads(child, pointer[1:])
}

func step(value any, part string) (any, bool) {
	switch value := value.(type) {
	case map[string]any:
		child, found := value[part]
		return child, found
	case []any:
		if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(value) {
			_, gone := value[i].(taken)
			return value[i], !gone
		}
	}
	return nil, false
}

// take removes what a pointer leads to, and tells whether the mapping became empty.
func take(value any, pointer Pointer) bool {
	child, found := step(value, pointer[0])
	if !found || len(pointer) > 1 && !take(child, pointer[1:]) {
		return false
	}
	switch value := value.(type) {
	case map[string]any:
		delete(value, pointer[0])
		return len(value) == 0
	case []any:
		i, _ := strconv.Atoi(pointer[0])
		value[i] = taken{}
	}
	return false
}

// compact closes the gaps in lists.
func compact(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, child := range value {
			value[name] = compact(child)
		}
	case []any:
		kept := value[:0]
		for _, item := range value {
			if _, gone := item.(taken); !gone {
				kept = append(kept, compact(item))
			}
		}
		return kept
	}
	return value
}
