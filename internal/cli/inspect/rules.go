// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"

	"github.com/satchel-dev/satchel/internal/view"
)

// The words of roles and bindings as people are shown them. They come from the bundle, each through word.

func accountText(s rbac.Subject) string {
	if s.Kind == rbac.ServiceAccountKind {
		return s.Kind + " " + view.Word(s.Namespace) + "/" + view.Word(s.Name)
	}
	return view.Word(s.Kind) + " " + view.Word(s.Name)
}

// ruleText is a rule in words; everywhere: it holds in all namespaces.
func ruleText(r rbac.PolicyRule, everywhere bool) PermissionRule {
	var things []string
	if len(r.Resources) > 0 || len(r.NonResourceURLs) == 0 {
		things = append(things, ResourcesText(r.APIGroups, r.Resources))
	}
	if len(r.NonResourceURLs) > 0 {
		things = append(things, view.WordList(r.NonResourceURLs))
	}
	text := strings.Join(things, " and ")
	if len(r.ResourceNames) > 0 {
		text += " named " + view.WordList(r.ResourceNames)
		if !view.OnlyNamed(r) {
			text += ` ("" is what requests ask for that name none, such as list)`
		}
	}
	why, level := view.DangerOf(r, everywhere)
	return PermissionRule{Resources: text, Verbs: view.WordList(r.Verbs), Danger: why, rank: level}
}

// ResourcesText names resources with their groups: "deployments in apps".
func ResourcesText(groups, resources []string) string {
	names := make([]string, 0, len(groups))
	for _, g := range groups {
		switch g {
		case "":
			names = append(names, "core")
		case "*":
			names = append(names, "all groups")
		default:
			names = append(names, view.Word(g))
		}
	}
	where := " in " + cmp.Or(strings.Join(names, ", "), "no group")
	if slices.Contains(resources, "*") {
		return "all resources" + where
	}
	return cmp.Or(view.WordList(resources), "no resources") + where
}
