// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Singles are the single rights that rules amount to, in their order; a *TooManyError
// where they are more than Limit.
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

// Minimal leaves out what other rights of the list cover, or those of one that hold
// everywhere. Sorted.
func Minimal(list, everywhere []Right) []Right {
	all, wide := set{}, set{}
	all.add(list...)
	wide.add(everywhere...)
	return slices.SortedFunc(maps.Keys(all.minimal(wide)), Right.compare)
}
