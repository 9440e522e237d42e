// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Words describe permissions, one string for each set of verbs, sorted: "get, list
// pods, services (web)". Permissions that others cover are left out; of many names
// the first ones are named. With by, the objects that need a permission are
// added: "get pods for Role reader".
func Words(list []Right, by map[Right][]string) []string {
	all := set{}
	all.add(list...)
	nounsOf, wantedBy := map[string][]string{}, map[string][]string{}
	for _, rule := range all.minimal(nil).rules() {
		verbs := strings.Join(shown(rule.Verbs), ", ")
		nounsOf[verbs] = append(nounsOf[verbs], nouns(rule)...)
		for right := range each(rule) {
			wantedBy[verbs] = append(wantedBy[verbs], by[right]...)
		}
	}
	words := make([]string, 0, len(nounsOf))
	for _, verbs := range slices.Sorted(maps.Keys(nounsOf)) {
		text := verbs + " " + few(unique(nounsOf[verbs]), mostNouns)
		if who := unique(wantedBy[verbs]); len(who) > 0 {
			text += " for " + some(shown(who), MostWho)
		}
		words = append(words, text)
	}
	return words
}

func unique(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
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

// shown quotes strings that a reader would misread.
func shown(texts []string) []string {
	list := make([]string, 0, len(texts))
	for _, text := range texts {
		if text == "" || hidden(text) {
			text = fmt.Sprintf("%.100q", text)
		}
		list = append(list, text)
	}
	return list
}

const (
	mostNames = 5  // of objects of one resource
	mostNouns = 60 // resources with the same verbs
	// MostWho is how many of the objects that need a permission are named.
	MostWho = 2
)

// few lists the first names and counts the rest.
func few(names []string, most int) string {
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// some lists the first names, without the number of the others.
func some(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}
