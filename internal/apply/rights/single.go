// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Singles are the single permissions of rules, in their order; a *TooManyError
// beyond Limit.
func Singles(list []rbacv1.PolicyRule) ([]Right, error) {
	var rights []Right
	left := Limit
	for _, rule := range list {
		if left -= count(rule); left < 0 {
			return nil, &TooManyError{}
		}
		for right := range each(rule) {
			rights = append(rights, right)
		}
	}
	return rights, nil
}

// Minimal leaves out permissions that others of the list, or cluster-wide
// ones, cover. Sorted.
func Minimal(list, everywhere []Right) []Right {
	all, wide := set{}, set{}
	all.add(list...)
	wide.add(everywhere...)
	return slices.SortedFunc(maps.Keys(all.minimal(wide)), Right.compare)
}
