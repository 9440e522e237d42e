// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// TextError says that a part of a rule contains characters that a reader of the rule would
// misread.
type TextError struct{ Part, Value string }

// Error implements error.
func (e *TextError) Error() string {
	return fmt.Sprintf("%.100q cannot be the %s of a rule: correct it in the bundle", e.Value, e.Part)
}

// longest part of a rule.
const longest = 253

// hidden tells whether a string looks different from what it is: a permission or a name that a
// user could misread must not be granted. Real rules hold visible ASCII, and occasionally
// a superfluous space.
func hidden(text string) bool {
	return len(text) > longest || strings.ContainsFunc(text, func(c rune) bool { return c > unicode.MaxASCII || !unicode.IsPrint(c) })
}

// check finds the first permission, in their order, that cannot be written into a role.
func (p places) check() error {
	for _, namespace := range slices.Sorted(maps.Keys(p)) {
		if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
			return &TextError{Part: "namespace", Value: namespace}
		}
		var wrong []Right
		for right := range p[namespace] {
			if right.check() != nil {
				wrong = append(wrong, right)
			}
		}
		if len(wrong) > 0 {
			return slices.MinFunc(wrong, Right.compare).check()
		}
	}
	return nil
}

func (r Right) check() error {
	for _, part := range []struct{ name, value string }{
		{"verb", r.Verb}, {"API group", r.Group}, {"resource", r.Resource}, {"resource name", r.Name}, {"URL", r.URL},
	} {
		if hidden(part.value) {
			return &TextError{Part: part.name, Value: part.value}
		}
	}
	switch { // an empty string would read as nothing, and no name as all names
	case r.Verb == "":
		return &TextError{Part: "verb"}
	case r.URL == "" && r.Resource == "":
		return &TextError{Part: "resource"}
	case r.Unnamed:
		return &TextError{Part: "resource name"}
	}
	return nil
}

// addressable tells whether a string is one resource, and not a pattern of several.
func addressable(of schema.GroupResource) bool {
	return (of.Group == "" || len(validation.IsDNS1123Subdomain(of.Group)) == 0) && len(validation.IsDNS1035Label(of.Resource)) == 0
}

// checkObject refuses objects with an address that is a pattern, or matches everything.
func checkObject(object plan.Object) error {
	switch {
	case !addressable(object.Resource.GroupResource()):
		return &TextError{Part: "resource", Value: object.Resource.GroupResource().String()}
	case object.Name == "" || len(content.IsPathSegmentName(object.Name)) > 0:
		return &TextError{Part: "resource name", Value: object.Name}
	}
	return nil
}
