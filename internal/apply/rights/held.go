// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"iter"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Held are the permissions of an account, by namespace; "" is cluster-wide,
// which the rules of a namespace may repeat.
type Held map[string]*Rules

// Covers tells whether the account holds a permission at a place.
func (h Held) Covers(namespace string, right Right) bool {
	return h[""].Cover(right) || namespace != "" && h[namespace].Cover(right)
}

// Rules answer quickly whether they cover a permission. The zero value and nil cover nothing.
type Rules struct {
	byResource map[schema.GroupResource]map[permit]struct{}
	urls       []Right
	left       int // of Limit
	partial    bool
}

// permit is the permission of a rule on a resource: a verb, on one object or, without a
// name, on all of them; or on the empty name alone, see Right.Unnamed.
type permit struct {
	verb, name string
	unnamed    bool
}

// NewRules reads rules as a role lists them. Beyond Limit
// single permissions the rest is dropped: the result is then Partial.
func NewRules(list []rbacv1.PolicyRule) *Rules {
	rules := &Rules{byResource: map[schema.GroupResource]map[permit]struct{}{}, left: Limit}
	for _, rule := range list {
		weight := count(rule)
		if weight > rules.left {
			rules.partial = true
			continue
		}
		rules.left -= weight
		rules.add(rule)
	}
	return rules
}

// Partial tells that some rules were dropped, so that the account may hold permissions
// that the result does not cover.
func (r *Rules) Partial() bool { return r != nil && r.partial }

func (r *Rules) add(rule rbacv1.PolicyRule) {
	for right := range each(rule) {
		if right.URL != "" {
			r.urls = append(r.urls, right)
			continue
		}
		at := schema.GroupResource{Group: right.Group, Resource: right.Resource}
		if r.byResource[at] == nil {
			r.byResource[at] = map[permit]struct{}{}
		}
		r.byResource[at][permit{right.Verb, right.Name, right.Unnamed}] = struct{}{}
	}
}

// Cover tells whether one of the rules allows everything that the permission does. That is the
// rule of RBAC's escalation check: `*` is covered by nothing but `*`.
func (r *Rules) Cover(right Right) bool {
	if r == nil {
		return false
	}
	if right.URL != "" {
		return slices.ContainsFunc(r.urls, func(held Right) bool {
			return (held.Verb == right.Verb || held.Verb == rbacv1.VerbAll) && coversURL(held.URL, right.URL)
		})
	}
	for at := range right.widerResources() {
		permits := r.byResource[at]
		if len(permits) == 0 {
			continue
		}
		for _, verb := range [...]string{right.Verb, rbacv1.VerbAll} {
			_, one := permits[permit{verb, right.Name, right.Unnamed}]
			if _, all := permits[permit{verb: verb}]; one || all {
				return true
			}
		}
	}
	return false
}

// widerResources are the resource of the permission and those that include it.
func (r Right) widerResources() iter.Seq[schema.GroupResource] {
	resources := [...]string{r.Resource, rbacv1.ResourceAll, ""}
	all := resources[:2]
	if _, sub, found := strings.Cut(r.Resource, "/"); found {
		resources[2] = "*/" + sub
		all = resources[:]
	}
	return func(yield func(schema.GroupResource) bool) {
		for _, group := range [...]string{r.Group, rbacv1.APIGroupAll} {
			for _, resource := range all {
				if !yield(schema.GroupResource{Group: group, Resource: resource}) {
					return
				}
			}
		}
	}
}
