// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// IgnoreRule gives fields of some objects to others.
type IgnoreRule struct {
	Paths  []string // JSON pointers
	Target Selector
}

// Selector selects objects; what is empty selects all. Group, Version, Kind,
// Namespace and Name are regular expressions for the whole of it.
type Selector struct {
	Group, Version, Kind, Namespace, Name string
	LabelSelector, AnnotationSelector     string
}

// Ignore are compiled rules. The zero value ignores nothing.
type Ignore struct{ rules []ignoreRule }

type ignoreRule struct {
	pointers                              []Pointer
	group, version, kind, namespace, name *regexp.Regexp
	labels, annotations                   labels.Selector
}

// Pointer is a JSON pointer in its parts.
type Pointer []string

// NewIgnore compiles rules; its error names the one that is wrong.
func NewIgnore(rules []IgnoreRule) (Ignore, error) {
	var ignore Ignore
	for i, rule := range rules {
		compiled, err := rule.compile()
		if err != nil {
			return Ignore{}, fmt.Errorf("spec.driftDetection.ignore[%d].%w", i, err)
		}
		ignore.rules = append(ignore.rules, compiled)
	}
	return ignore, nil
}

func (r IgnoreRule) compile() (ignoreRule, error) {
	var compiled ignoreRule
	for _, path := range r.Paths {
		if !strings.HasPrefix(path, "/") {
			return ignoreRule{}, fmt.Errorf("paths: %q is no JSON pointer: it has to begin with /", path)
		}
		parts := strings.Split(path[1:], "/")
		for i := range parts {
			parts[i] = strings.ReplaceAll(strings.ReplaceAll(parts[i], "~1", "/"), "~0", "~")
		}
		if identifies(parts) {
			return ignoreRule{}, fmt.Errorf("paths: %q says what an object is, and cannot be given to others", path)
		}
		compiled.pointers = append(compiled.pointers, parts)
	}
	for _, part := range []struct {
		name, text string
		into       **regexp.Regexp
	}{
		{"group", r.Target.Group, &compiled.group},
		{"version", r.Target.Version, &compiled.version},
		{"kind", r.Target.Kind, &compiled.kind},
		{"namespace", r.Target.Namespace, &compiled.namespace},
		{"name", r.Target.Name, &compiled.name},
	} {
		expression, err := regexp.Compile("^(?:" + part.text + ")$")
		if err != nil {
			return ignoreRule{}, fmt.Errorf("target.%s: %q is no regular expression: %w", part.name, part.text, err)
		}
		if part.text != "" {
			*part.into = expression
		}
	}
	var err error
	if compiled.labels, err = labels.Parse(r.Target.LabelSelector); err != nil {
		return ignoreRule{}, fmt.Errorf("target.labelSelector: %w", err)
	}
	if compiled.annotations, err = labels.Parse(r.Target.AnnotationSelector); err != nil {
		return ignoreRule{}, fmt.Errorf("target.annotationSelector: %w", err)
	}
	return compiled, nil
}

// identifies tells whether a pointer leads to what an object is, or whose it is.
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

// Of gives the pointers of all rules for an object.
func (g Ignore) Of(object *unstructured.Unstructured) []Pointer {
	var pointers []Pointer
	for _, rule := range g.rules {
		if rule.selects(object) {
			pointers = append(pointers, rule.pointers...)
		}
	}
	return pointers
}

func (r ignoreRule) selects(object *unstructured.Unstructured) bool {
	gvk := object.GroupVersionKind()
	for _, part := range []struct {
		expression *regexp.Regexp
		text       string
	}{
		{r.group, gvk.Group},
		{r.version, gvk.Version},
		{r.kind, gvk.Kind},
		{r.namespace, object.GetNamespace()},
		{r.name, object.GetName()},
	} {
		if part.expression != nil && !part.expression.MatchString(part.text) {
			return false
		}
	}
	return r.labels.Matches(labels.Set(object.GetLabels())) && r.annotations.Matches(labels.Set(object.GetAnnotations()))
}

// Without copies an object and takes the fields out that pointers lead to, and
// mappings that are empty then. It gives the object itself, and false, where none does.
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

// taken stands where an item of a list was, until all are taken: the others keep
// their places.
type taken struct{}

// leads tells whether a pointer leads to something.
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

// take tells whether a mapping has become empty.
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
