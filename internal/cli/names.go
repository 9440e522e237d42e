// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"slices"

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

// nearest returns the names that differ least from the wanted one, the nearest first.
func nearest(wanted string, names []string) []string {
	sorted := slices.Clone(names)
	slices.SortFunc(sorted, func(a, b string) int {
		return cmp.Or(cmp.Compare(distance(wanted, a), distance(wanted, b)), cmp.Compare(a, b))
	})
	return sorted[:min(len(sorted), maxSuggestions)]
}

// distance counts the letters to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
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
