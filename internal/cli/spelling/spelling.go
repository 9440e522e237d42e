// SPDX-License-Identifier: Apache-2.0

// Package spelling suggests names that a user may have meant.
package spelling

import (
	"cmp"
	"slices"
)

// maxSuggestions bounds the names that an error suggests.
const maxSuggestions = 5

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
