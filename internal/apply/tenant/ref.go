// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Ref is the address of an object, or of a collection when Name is empty.
type Ref struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string // Namespace is empty for resources of the cluster
}

// RefTo is the address of an object of the inventory.
func RefTo(id inventory.ID, resource schema.GroupVersionResource) Ref {
	return Ref{Resource: resource, Namespace: id.Namespace, Name: id.Name}
}

// RefError says that no request was sent, because a part of the address is not a segment
// of a path: it would lead to another object.
type RefError struct {
	Part, Value string
}

// Error implements error.
func (e *RefError) Error() string {
	if e.Value == "" {
		return "the address of an object lacks its " + e.Part
	}
	return fmt.Sprintf("%.100q cannot be the %s of an object: it would lead to another one", e.Value, e.Part)
}

// object checks the address of one object: without a name it would be the address of the
// collection, and all of it would be deleted.
func (r Ref) object() error {
	if r.Name == "" {
		return &RefError{Part: "name"}
	}
	return r.collection()
}

// collection checks everything that becomes part of a path.
func (r Ref) collection() error {
	for _, part := range []struct {
		name, value string
		required    bool
	}{
		{"group", r.Resource.Group, false},
		{"version", r.Resource.Version, true},
		{"resource", r.Resource.Resource, true},
		{"namespace", r.Namespace, false},
		{"name", r.Name, false},
	} {
		if part.value == "" && !part.required {
			continue
		}
		if part.value == "" || len(content.IsPathSegmentName(part.value)) > 0 || strings.ContainsFunc(part.value, unicode.IsControl) {
			return &RefError{Part: part.name, Value: part.value}
		}
	}
	return nil
}

// path is the request path of the reference.
func (r Ref) path() []string {
	path := []string{"/apis", r.Resource.Group, r.Resource.Version}
	if r.Resource.Group == "" {
		path = []string{"/api", r.Resource.Version}
	}
	if r.Namespace != "" {
		path = append(path, "namespaces", r.Namespace)
	}
	path = append(path, r.Resource.Resource)
	if r.Name != "" {
		path = append(path, r.Name)
	}
	return path
}

// String is the reference for error messages.
func (r Ref) String() string { return strings.Join(r.path(), "/") }
