// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// set is the permissions at one place.
type set map[Right]struct{}

func (s set) add(rights ...Right) {
	for _, right := range rights {
		s[right] = struct{}{}
	}
}

// coversMore tells whether another permission of the set covers this one.
func (s set) coversMore(right Right) bool {
	if right.URL != "" {
		return s.coversURL(right)
	}
	for wide := range right.wider() {
		if _, found := s[wide]; found && wide != right {
			return true
		}
	}
	return false
}

// coversURL is coversMore for URLs. Of two that cover one another only the first one counts.
func (s set) coversURL(right Right) bool {
	for other := range s {
		verb := other.Verb == right.Verb || other.Verb == rbacv1.VerbAll
		if other.URL == "" || other == right || !verb || !coversURL(other.URL, right.URL) {
			continue
		}
		if other.Verb != right.Verb || !coversURL(right.URL, other.URL) || other.compare(right) < 0 {
			return true
		}
	}
	return false
}

func (s set) covers(right Right) bool {
	_, found := s[right]
	return found || s.coversMore(right)
}

// minimal leaves out permissions that others of the set, or of a cluster-wide
// one, cover.
func (s set) minimal(everywhere set) set {
	kept := set{}
	for right := range s {
		if !s.coversMore(right) && !everywhere.covers(right) {
			kept.add(right)
		}
	}
	return kept
}

// rules writes the permissions as few rules, sorted. They allow exactly the same:
// permissions are merged only where they differ in one field.
func (s set) rules() []rbacv1.PolicyRule {
	urls, resources := map[string][]string{}, map[Right][]string{}
	for right := range s {
		if right.URL != "" {
			urls[right.URL] = append(urls[right.URL], right.Verb)
			continue
		}
		of := right
		of.Verb = ""
		resources[of] = append(resources[of], right.Verb)
	}
	list := make([]rbacv1.PolicyRule, 0, len(resources)+len(urls))
	for of, verbs := range resources {
		slices.Sort(verbs)
		list = append(list, rbacv1.PolicyRule{
			APIGroups: []string{of.Group}, Resources: []string{of.Resource}, ResourceNames: of.Names(), Verbs: verbs,
		})
	}
	for url, verbs := range urls {
		slices.Sort(verbs)
		list = append(list, rbacv1.PolicyRule{NonResourceURLs: []string{url}, Verbs: verbs})
	}
	for _, field := range fields {
		list = joined(list, field)
	}
	return list
}

// fields are the fields of a rule that are merged, in this order, when
// all others are equal.
var fields = []func(*rbacv1.PolicyRule) *[]string{
	func(r *rbacv1.PolicyRule) *[]string { return &r.ResourceNames },
	func(r *rbacv1.PolicyRule) *[]string { return &r.Resources },
	func(r *rbacv1.PolicyRule) *[]string { return &r.APIGroups },
	func(r *rbacv1.PolicyRule) *[]string { return &r.NonResourceURLs },
}

// joined merges rules that differ in one field only. A rule with an empty
// field stays alone: no names means all names.
func joined(rules []rbacv1.PolicyRule, field func(*rbacv1.PolicyRule) *[]string) []rbacv1.PolicyRule {
	byRest, values := map[string]rbacv1.PolicyRule{}, map[string][]string{}
	for _, rule := range rules {
		rest := rule
		if len(*field(&rest)) > 0 {
			*field(&rest) = []string{""}
		}
		key := keyOf(rest)
		byRest[key] = rule
		values[key] = append(values[key], *field(&rule)...)
	}
	list := make([]rbacv1.PolicyRule, 0, len(byRest))
	for key, rule := range byRest {
		slices.Sort(values[key])
		*field(&rule) = values[key]
		list = append(list, rule)
	}
	slices.SortFunc(list, compareRules)
	return list
}

// keyOf identifies a rule.
func keyOf(rule rbacv1.PolicyRule) string {
	return fmt.Sprintf("%q%q%q%q%q", rule.APIGroups, rule.Resources, rule.ResourceNames, rule.NonResourceURLs, rule.Verbs)
}

func compareRules(a, b rbacv1.PolicyRule) int {
	return cmp.Or(
		slices.Compare(a.NonResourceURLs, b.NonResourceURLs), slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources),
		slices.Compare(a.ResourceNames, b.ResourceNames), slices.Compare(a.Verbs, b.Verbs),
	)
}
