// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxSuggestions bounds the names that an error suggests.
const maxSuggestions = 5

// names returns the names of objects.
func names(objects []*unstructured.Unstructured) []string {
	found := make([]string, 0, len(objects))
	for _, o := range objects {
		found = append(found, o.GetName())
	}
	return found
}

// namespacesOf returns the namespaces that hold an object of that name.
func namespacesOf(name string, objects []*unstructured.Unstructured) []string {
	var found []string
	for _, o := range objects {
		if o.GetName() == name {
			found = append(found, o.GetNamespace())
		}
	}
	slices.Sort(found)
	return found[:min(len(found), maxSuggestions)]
}

// LooksLikePath tells whether a name that does not exist was meant as a path: no image reference begins like that.
func LooksLikePath(what string) bool {
	return what == "" || what == "." || what == ".." || filepath.IsAbs(what) || strings.HasPrefix(what, "./") ||
		strings.HasPrefix(what, "../") || strings.HasPrefix(what, "~") || strings.HasSuffix(what, "/")
}

// LooksLikeImage tells whether a name has what those of images have and those of folders rarely: a tag, a digest, a host.
func LooksLikeImage(what string) bool {
	host, _, nested := strings.Cut(what, "/")
	return !LooksLikePath(what) && (strings.ContainsAny(what, ":@") || nested && strings.Contains(host, "."))
}
