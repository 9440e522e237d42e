// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ID identifies one object of a cluster, whatever version it is written in.
// Namespace is empty for cluster-scoped objects.
type ID struct {
	Group, Kind, Namespace, Name string
}

// IDOf is the identity by an object's own fields.
func IDOf(object *unstructured.Unstructured) ID {
	gvk := object.GroupVersionKind()
	return ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// GroupKind of the object.
func (id ID) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// String is the identity for people: "Deployment.apps shop/web", "Namespace shop".
func (id ID) String() string {
	kind := id.Kind
	if id.Group != "" {
		kind += "." + id.Group
	}
	if id.Namespace == "" {
		return kind + " " + id.Name
	}
	return kind + " " + id.Namespace + "/" + id.Name
}

// Compare orders identities by group, kind, namespace and name.
func (id ID) Compare(other ID) int {
	return cmp.Or(
		strings.Compare(id.Group, other.Group),
		strings.Compare(id.Kind, other.Kind),
		strings.Compare(id.Namespace, other.Namespace),
		strings.Compare(id.Name, other.Name),
	)
}

// encode writes namespace_name_group_kind. Only a name may contain an underscore
// itself (names of RBAC objects are free), so the outer ones separate.
func (id ID) encode() string {
	return id.Namespace + "_" + id.Name + "_" + id.Group + "_" + id.Kind
}

// decodeID reads what encode wrote and refuses identities that no API server would
// accept.
func decodeID(text string) (ID, error) {
	namespace, rest, found := strings.Cut(text, "_")
	lastKind := strings.LastIndexByte(rest, '_')
	if !found || lastKind < 0 {
		return ID{}, fmt.Errorf("%.100q is not namespace_name_group_kind", text)
	}
	kind, rest := rest[lastKind+1:], rest[:lastKind]
	lastGroup := strings.LastIndexByte(rest, '_')
	if lastGroup < 0 {
		return ID{}, fmt.Errorf("%.100q is not namespace_name_group_kind", text)
	}
	id := ID{Group: rest[lastGroup+1:], Kind: kind, Namespace: namespace, Name: rest[:lastGroup]}
	if !id.plausible() {
		return ID{}, fmt.Errorf("%.100q does not name an object", text)
	}
	return id, nil
}

// longestName is the limit of the API server for any name.
const longestName = 253

// plausible tells whether the parts could be those of an object. It keeps
// slashes and dot segments of a forged inventory out of request paths.
func (id ID) plausible() bool {
	for _, part := range []string{id.Group, id.Kind, id.Namespace, id.Name} {
		if len(part) > longestName || !utf8.ValidString(part) || strings.ContainsAny(part, "/%\x00") || part == "." || part == ".." {
			return false
		}
	}
	return id.Kind != "" && id.Name != "" && !strings.Contains(id.Group+id.Kind+id.Namespace, "_")
}
