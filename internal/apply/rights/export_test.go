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

// Missing finds the permissions of the request that an account lacks. The error says
// what is wrong with the objects.
func (r Request) Missing(held Held) (Missing, error) {
	demands, err := r.demands()
	if err != nil {
		return Missing{}, err
	}
	return FindMissing(Needs(r), demands, held), nil
}

// HeldBy are the permissions of an account with exactly these grants.
func HeldBy(grants []Grant) Held {
	held := Held{}
	for _, grant := range grants {
		held[grant.Namespace] = NewRules(grant.Rules)
	}
	return held
}
