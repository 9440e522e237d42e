// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Words say rights for people, one text for each set of verbs, sorted: "get, list
// pods, services (web)". What is covered by other rights is left out; of many names
// the first ones are given.
func Words(list []Right) []string {
	all := set{}
	all.add(list...)
	byVerbs := map[string][]string{}
	for _, rule := range all.minimal(nil).rules() {
		verbs := strings.Join(shown(rule.Verbs), ", ")
		byVerbs[verbs] = append(byVerbs[verbs], nouns(rule)...)
	}
	words := make([]string, 0, len(byVerbs))
	for _, verbs := range slices.Sorted(maps.Keys(byVerbs)) {
		slices.Sort(byVerbs[verbs])
		words = append(words, verbs+" "+few(byVerbs[verbs], mostNouns))
	}
	return words
}

// nouns are the resources of a rule, each with the names, or its URLs.
func nouns(rule rbacv1.PolicyRule) []string {
	words := shown(rule.NonResourceURLs)
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			word := shown([]string{Right{Group: group, Resource: resource}.resource()})[0]
			if len(rule.ResourceNames) > 0 {
				word += " (" + few(shown(rule.ResourceNames), mostNames) + ")"
			}
			words = append(words, word)
		}
	}
	return words
}

// shown quotes what a reader would not see as it is.
func shown(texts []string) []string {
	list := make([]string, 0, len(texts))
	for _, text := range texts {
		if hidden(text) {
			text = fmt.Sprintf("%.100q", text)
		}
		list = append(list, text)
	}
	return list
}

const (
	mostNames = 5  // of objects of one resource
	mostNouns = 60 // resources with the same verbs
)

// few lists the first names and counts the rest.
func few(names []string, most int) string {
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
