// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Right is the smallest permission of RBAC: one verb on one resource, on
// all its objects or on one of them, or on one URL. It is comparable.
type Right struct {
	Verb, Group, Resource string
	Name                  string // of the object; empty: all of them
	URL                   string // instead of group, resource and name
	// Unnamed: the rule lists the empty name, which does not mean all objects. The API server
	// matches it with requests without a name, such as list.
	Unnamed bool
}

// resource is the resource for people: "deployments.apps".
func (r Right) resource() string {
	if r.Group == "" {
		return r.Resource
	}
	return r.Resource + "." + r.Group
}

// Names are the resourceNames of a rule; none: all.
func (r Right) Names() []string {
	if r.Name == "" && !r.Unnamed {
		return nil
	}
	return []string{r.Name}
}

func (r Right) compare(other Right) int {
	return cmp.Or(
		strings.Compare(r.URL, other.URL), strings.Compare(r.Group, other.Group), strings.Compare(r.Resource, other.Resource),
		strings.Compare(r.Name, other.Name), strings.Compare(r.Verb, other.Verb),
		len(r.Names())-len(other.Names()),
	)
}

// Limit is the maximum number of single permissions in the rules of one bundle. The largest
// published operator that was analysed has 636; a few lists that multiply reach any
// number.
const Limit = 20_000

// TooManyError says that the rules of a bundle amount to more than Limit single
// permissions; it is reported for the role that exceeds it.
type TooManyError struct{}

// Error implements error.
func (*TooManyError) Error() string {
	return fmt.Sprintf("the rules of the bundle amount to more than %d single permissions", Limit)
}

// weightOfURL: each URL is compared with all others.
const weightOfURL = 100

// count is the number of single permissions of a rule; at most math.MaxInt32.
func count(rule rbacv1.PolicyRule) int {
	resources := product(len(rule.APIGroups), len(rule.Resources), len(rule.Verbs), max(1, len(rule.ResourceNames)))
	return min(math.MaxInt32, resources+product(weightOfURL, len(rule.NonResourceURLs), len(rule.Verbs)))
}

func product(factors ...int) int {
	result := 1
	for _, factor := range factors {
		result = min(math.MaxInt32, result*factor) // neither is more, so nothing overflows
	}
	return result
}

// each yields the single permissions of a rule.
func each(rule rbacv1.PolicyRule) iter.Seq[Right] {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	return func(yield func(Right) bool) {
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				if !yield(Right{Verb: verb, URL: url}) {
					return
				}
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						unnamed := name == "" && len(rule.ResourceNames) > 0
						if !yield(Right{Verb: verb, Group: group, Resource: resource, Name: name, Unnamed: unnamed}) {
							return
						}
					}
				}
			}
		}
	}
}

// wider yields the permission itself and every other one that covers it, except URLs.
func (r Right) wider() iter.Seq[Right] {
	return func(yield func(Right) bool) {
		for at := range r.widerResources() {
			for _, verb := range []string{r.Verb, rbacv1.VerbAll} {
				for _, of := range []Right{r, {}} {
					if !yield(Right{Verb: verb, Group: at.Group, Resource: at.Resource, Name: of.Name, Unnamed: of.Unnamed}) {
						return
					}
				}
			}
		}
	}
}

// coversURL tells whether the other URL, which may end in a star, matches a URL.
func coversURL(other, url string) bool {
	return other == url || strings.HasSuffix(other, "*") && strings.HasPrefix(url, strings.TrimRight(other, "*"))
}
