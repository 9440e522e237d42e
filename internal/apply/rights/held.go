// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Held is what an account may do, by namespace; "" is what it may do everywhere,
// which the rules of a namespace may repeat.
type Held map[string]*Rules

// Covers tells whether the account holds a right at a place.
func (h Held) Covers(namespace string, right Right) bool {
	return h[""].Cover(right) || namespace != "" && h[namespace].Cover(right)
}

// Rules answer quickly whether they cover a right. The zero value and nil cover nothing.
type Rules struct {
	byResource map[schema.GroupResource][]*rbacv1.PolicyRule
	urls       []*rbacv1.PolicyRule
}

// NewRules takes rules as a role lists them.
func NewRules(list []rbacv1.PolicyRule) *Rules {
	rules := &Rules{byResource: map[schema.GroupResource][]*rbacv1.PolicyRule{}}
	for i := range list {
		rule := &list[i]
		if len(rule.NonResourceURLs) > 0 {
			rules.urls = append(rules.urls, rule)
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				at := schema.GroupResource{Group: group, Resource: resource}
				rules.byResource[at] = append(rules.byResource[at], rule)
			}
		}
	}
	return rules
}

// Cover tells whether one of the rules allows all that the right does. That is the
// rule of RBAC's escalation check: `*` is covered by nothing but `*`.
func (r *Rules) Cover(right Right) bool {
	if r == nil {
		return false
	}
	if right.URL != "" {
		return slices.ContainsFunc(r.urls, func(rule *rbacv1.PolicyRule) bool {
			return hasVerb(rule, right.Verb) && slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool { return coversURL(url, right.URL) })
		})
	}
	for wide := range right.wider() {
		for _, rule := range r.byResource[schema.GroupResource{Group: wide.Group, Resource: wide.Resource}] {
			named := len(rule.ResourceNames) > 0
			if hasVerb(rule, right.Verb) && (!named || right.Name != "" && slices.Contains(rule.ResourceNames, right.Name)) {
				return true
			}
		}
	}
	return false
}

func hasVerb(rule *rbacv1.PolicyRule, verb string) bool {
	return slices.Contains(rule.Verbs, verb) || slices.Contains(rule.Verbs, rbacv1.VerbAll)
}
