// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
)

// The words of roles and bindings as people are shown them. They come from the bundle, each through word.

func accountText(s rbac.Subject) string {
	if s.Kind == rbac.ServiceAccountKind {
		return s.Kind + " " + word(s.Namespace) + "/" + word(s.Name)
	}
	return word(s.Kind) + " " + word(s.Name)
}

// ruleText is a rule in words; everywhere: it holds in all namespaces.
func ruleText(r rbac.PolicyRule, everywhere bool) permissionRule {
	var things []string
	if len(r.Resources) > 0 || len(r.NonResourceURLs) == 0 {
		things = append(things, resourcesText(r.APIGroups, r.Resources))
	}
	if len(r.NonResourceURLs) > 0 {
		things = append(things, wordList(r.NonResourceURLs))
	}
	text := strings.Join(things, " and ")
	if len(r.ResourceNames) > 0 {
		text += " named " + wordList(r.ResourceNames)
		if !onlyNamed(r) {
			text += ` ("" is what requests ask for that name none, such as list)`
		}
	}
	why, level := dangerOf(r, everywhere)
	return permissionRule{Resources: text, Verbs: wordList(r.Verbs), Danger: why, rank: level}
}

// resourcesText names resources with their groups: "deployments in apps".
func resourcesText(groups, resources []string) string {
	names := make([]string, 0, len(groups))
	for _, g := range groups {
		switch g {
		case "":
			names = append(names, "core")
		case "*":
			names = append(names, "all groups")
		default:
			names = append(names, word(g))
		}
	}
	where := " in " + cmp.Or(strings.Join(names, ", "), "no group")
	if slices.Contains(resources, "*") {
		return "all resources" + where
	}
	return cmp.Or(wordList(resources), "no resources") + where
}
