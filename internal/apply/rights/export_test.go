// SPDX-License-Identifier: Apache-2.0

package rights

import rbacv1 "k8s.io/api/rbac/v1"

// Compact makes rules minimal.
func Compact(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	all := set{}
	for _, rule := range rules {
		for right := range each(rule) {
			all.add(right)
		}
	}
	return all.minimal(nil).rules()
}
