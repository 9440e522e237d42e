// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
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

// Nearest returns the names that differ least from the wanted one, the nearest first.
func Nearest(wanted string, names []string) []string {
	sorted := slices.Clone(names)
	slices.SortFunc(sorted, func(a, b string) int {
		return cmp.Or(cmp.Compare(Distance(wanted, a), Distance(wanted, b)), cmp.Compare(a, b))
	})
	return sorted[:min(len(sorted), maxSuggestions)]
}

// Distance counts the letters to insert, delete or replace (Levenshtein).
func Distance(a, b string) int {
	previous := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		current := make([]int, len(b)+1)
		current[0] = i + 1
		for j := range len(b) {
			replaced := previous[j]
			if a[i] != b[j] {
				replaced++
			}
			current[j+1] = min(replaced, previous[j+1]+1, current[j]+1)
		}
		previous = current
	}
	return previous[len(b)]
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
