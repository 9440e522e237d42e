// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/satchel-dev/satchel/internal/apply/rights"
)

// vocabulary is small, so that rules overlap.
var vocabulary = map[string][]string{
	"group": {"", "apps", "*"}, "resource": {"pods", "pods/log", "*/log", "*", "deployments"}, "verb": {"get", "list", "*"},
	"name": {"a", "b", ""}, "url": {"/", "/a", "/a/*", "/a/b", "/a*", "*", "/a**"},
}

func anyRules(random *rand.Rand) []rbacv1.PolicyRule {
	some := func(of string, least int) []string {
		words := slices.Clone(vocabulary[of])
		random.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		return words[:least+random.IntN(3-least)]
	}
	var rules []rbacv1.PolicyRule
	for range 1 + random.IntN(4) {
		rule := rbacv1.PolicyRule{Verbs: some("verb", 1)}
		if random.IntN(3) == 0 {
			rule.NonResourceURLs = some("url", 1)
		} else {
			rule.APIGroups, rule.Resources, rule.ResourceNames = some("group", 1), some("resource", 1), some("name", 0)
		}
		rules = append(rules, rule)
	}
	return rules
}

// rightOf is the permission of a rule with one value in each field.
func rightOf(rule rbacv1.PolicyRule) rights.Right {
	right := rights.Right{Verb: rule.Verbs[0]}
	if len(rule.NonResourceURLs) > 0 {
		right.URL = rule.NonResourceURLs[0]
		return right
	}
	right.Group, right.Resource = rule.APIGroups[0], rule.Resources[0]
	if len(rule.ResourceNames) > 0 {
		right.Name, right.Unnamed = rule.ResourceNames[0], rule.ResourceNames[0] == ""
	}
	return right
}

// Cover gives the same results as Kubernetes' own escalation check.
func TestCoverAsKubernetesDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	yes, no := 0, 0
	for range 20_000 {
		held, wanted := anyRules(random), anyRules(random)
		rules := rights.NewRules(held)
		for _, rule := range wanted {
			for _, single := range validation.BreakdownRule(rule) {
				want, _ := validation.Covers(held, []rbacv1.PolicyRule{single})
				if got := rules.Cover(rightOf(single)); got != want {
					t.Fatalf("%v covers %v: got %t, want %t", held, single, got, want)
				}
				if want {
					yes++
				} else {
					no++
				}
			}
		}
	}
	if yes < 1000 || no < 1000 {
		t.Errorf("%d covered and %d not: the test sees one side only", yes, no)
	}
}

// The resulting rules allow exactly the given permissions, and none covers another.
func TestRulesAreExactAndMinimal(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 5_000 {
		given := anyRules(random)
		got := rights.Compact(given)
		if enough, missing := validation.Covers(got, given); !enough {
			t.Fatalf("%v became %v, which lacks %v", given, got, missing)
		}
		if enough, more := validation.Covers(given, got); !enough {
			t.Fatalf("%v became %v, which has %v besides", given, got, more)
		}
		var single []rbacv1.PolicyRule
		for _, rule := range got {
			single = append(single, validation.BreakdownRule(rule)...)
		}
		for i := range single {
			if covered, _ := validation.Covers(slices.Concat(single[:i], single[i+1:]), single[i:i+1]); covered {
				t.Fatalf("%v became %v, where the others cover %v", given, got, single[i])
			}
		}
		slices.Reverse(given)
		if diff := cmp.Diff(got, rights.Compact(given)); diff != "" {
			t.Fatalf("the order of the rules matters:\n%s", diff)
		}
	}
}
