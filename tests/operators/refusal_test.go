// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// lack is what a refusal says that a ServiceAccount lacks: some verbs on one resource, or on one URL.
type lack struct {
	verbs   []string
	noun    string   // as people read it: deployments.apps
	names   []string // of objects; none: all
	more    bool     // not all names are said
	granted bool     // it is lacking because a role grants it
}

var (
	lackingLine = regexp.MustCompile(`^the ServiceAccount (?:cannot|may not).*?, in (the cluster|namespace "[^"]+"): (.*): grant this`)
	lackingPart = regexp.MustCompile(`^([^ ,]+(?:, [^ ,]+)*) (.*)$`)
	notNamed    = regexp.MustCompile(` and (\d+) more$`)
)

// lacks reads a refusal: what is lacking by place, "" being the cluster, and whether it says that there is more.
func lacks(message string) (found map[string][]lack, more bool) {
	found = map[string][]lack{}
	for line := range strings.Lines(message) {
		match := lackingLine.FindStringSubmatch(strings.TrimSpace(line))
		if match == nil {
			continue
		}
		place := strings.Trim(strings.TrimPrefix(strings.TrimPrefix(match[1], "namespace "), "the cluster"), `"`)
		for part := range strings.SplitSeq(match[2], "; ") {
			part, _, _ = strings.Cut(part, " for ") // whom
			words := lackingPart.FindStringSubmatch(part)
			if words == nil || strings.HasPrefix(part, "and ") {
				more = true
				continue
			}
			for _, noun := range nouns(words[2]) {
				if notNamed.MatchString(noun) {
					noun, more = notNamed.ReplaceAllString(noun, ""), true
				}
				one := lack{verbs: strings.Split(words[1], ", "), noun: noun, granted: strings.HasPrefix(line, "the ServiceAccount cannot grant")}
				if bare, names, named := strings.Cut(noun, " ("); named {
					names = strings.TrimSuffix(names, ")")
					one.noun, one.more = bare, notNamed.MatchString(names)
					one.names = strings.Split(notNamed.ReplaceAllString(names, ""), ", ")
				}
				found[place] = append(found[place], one)
			}
		}
	}
	return found, more
}

// nouns splits a list at the commas outside of parentheses.
func nouns(list string) []string {
	var out []string
	depth, start := 0, 0
	for i, c := range list {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			out = append(out, list[start:i])
			start = i + len(", ")
		}
	}
	return append(out, list[start:])
}

// wrong says how a refusal differs from what it has to say when exactly this rule is missing: each verb on each of its
// resources, and nothing that the rule does not allow. A rule for the cluster holds in each namespace, and one that allows
// to escalate roles stands for whatever they grant. Empty: it does not.
func (rule requiredRule) wrong(message string) []string {
	var wrong []string
	var said []lack
	found, more := lacks(message)
	for place, lacking := range found {
		said = append(said, lacking...)
		for _, one := range lacking {
			own := rule.role.GetNamespace()
			if own != "" && own != place || !rule.allows(one) && !(one.granted && rule.allows(escalate)) {
				wrong = append(wrong, fmt.Sprintf("the rule does not allow %v %s %v in %q", one.verbs, one.noun, one.names, place))
			}
		}
	}
	if more {
		return wrong // not everything is said
	}
	for _, want := range rule.words() {
		if !slices.ContainsFunc(said, func(one lack) bool { return one.says(want) }) {
			wrong = append(wrong, fmt.Sprintf("it does not say %v %s %v", want.verbs, want.noun, want.names))
		}
	}
	return wrong
}

var escalate = lack{verbs: []string{"escalate"}, noun: "clusterroles.rbac.authorization.k8s.io"}

// words are the single permissions of the rule, as messages spell them.
func (rule requiredRule) words() []lack {
	var out []lack
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, url := range rule.NonResourceURLs {
			out = append(out, lack{verbs: []string{verb}, noun: url})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					one := lack{verbs: []string{verb}, noun: strings.TrimSuffix(resource+"."+group, ".")}
					if name != "" {
						one.names = []string{name}
					}
					out = append(out, one)
				}
			}
		}
	}
	return out
}

// says tells whether something that is said includes a single right.
func (l lack) says(want lack) bool {
	return l.noun == want.noun && slices.Contains(l.verbs, want.verbs[0]) &&
		(len(want.names) == 0 && len(l.names) == 0 || l.more || len(want.names) > 0 && slices.Contains(l.names, want.names[0]))
}

// allows tells whether the rule allows everything that is said.
func (rule requiredRule) allows(said lack) bool {
	listed := func(list []string, value, all string) bool {
		return slices.Contains(list, value) || slices.Contains(list, all)
	}
	for _, verb := range said.verbs {
		if !listed(rule.Verbs, verb, rbacv1.VerbAll) {
			return false
		}
	}
	if strings.HasPrefix(said.noun, "/") {
		return listed(rule.NonResourceURLs, said.noun, "*")
	}
	resource, group, _ := strings.Cut(said.noun, ".")
	if !listed(rule.Resources, resource, rbacv1.ResourceAll) || !listed(rule.APIGroups, group, rbacv1.APIGroupAll) {
		return false
	}
	return len(rule.ResourceNames) == 0 || len(said.names) > 0 && !slices.ContainsFunc(said.names, func(name string) bool {
		return !slices.Contains(rule.ResourceNames, name)
	})
}

// TestRefusalNamesTheRule: the check above is worth something only where it fails for each refusal that is about another rule.
func TestRefusalNamesTheRule(t *testing.T) {
	everything := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	workloads := rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments", "replicasets"}, Verbs: []string{"create", "get"}, ResourceNames: []string{"a", "b"}}
	metrics := rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}
	roles := rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"*"}}
	const grant = ": grant this to service account shop/installer by a Role"
	for name, c := range map[string]struct {
		reason    string
		rule      rbacv1.PolicyRule
		namespace string
		message   string
		right     bool
	}{
		"everything":         {"what it covers is lacking, too", everything, "", "the ServiceAccount cannot, in namespace \"shop\": create, get pods (a), services (b)" + grant + "\nthe ServiceAccount cannot grant what it does not hold, in the cluster: * *.* for ClusterRole x" + grant, true},
		"stood in":           {"a user who may escalate needs no other permission that a role grants", roles, "", "the ServiceAccount cannot grant what it does not hold, in the cluster: * clusterroles.rbac.authorization.k8s.io for ClusterRole x; get /metrics for ClusterRole y" + grant, true},
		"stood not in":       {"to create something is no matter of roles", roles, "", "the ServiceAccount cannot, in the cluster: * clusterroles.rbac.authorization.k8s.io; create pods" + grant, false},
		"only a part":        {"the rule itself is not said", everything, "", "the ServiceAccount cannot, in the cluster: create, get pods (a)" + grant, false},
		"nothing":            {"it refuses for another reason", everything, "", "the ServiceAccount cannot reach the cluster", false},
		"names":              {"all is said", workloads, "shop", "the ServiceAccount cannot, in namespace \"shop\": create, get deployments.apps (a, b), replicasets.apps (a, b)" + grant, true},
		"some names":         {"people read the first ones", workloads, "shop", "the ServiceAccount cannot, in namespace \"shop\": create, get deployments.apps (a and 1 more), replicasets.apps (a and 1 more)" + grant, true},
		"in two parts":       {"all is said", workloads, "shop", "the ServiceAccount cannot, in namespace \"shop\": create deployments.apps (a, b), replicasets.apps (a, b); get deployments.apps (a, b), replicasets.apps (a, b)" + grant, true},
		"a verb is missing":  {"get is not said", workloads, "shop", "the ServiceAccount cannot, in namespace \"shop\": create deployments.apps (a, b), replicasets.apps (a, b)" + grant, false},
		"a name is missing":  {"b is not said", workloads, "shop", "the ServiceAccount cannot, in namespace \"shop\": create, get deployments.apps (a), replicasets.apps (a, b)" + grant, false},
		"a verb too many":    {"the rule does not delete", workloads, "shop", "the ServiceAccount cannot, in namespace \"shop\": create, delete, get deployments.apps (a, b), replicasets.apps (a, b)" + grant, false},
		"all names":          {"the rule is about two", workloads, "shop", "the ServiceAccount cannot, in namespace \"shop\": create, get deployments.apps, replicasets.apps (a, b)" + grant, false},
		"another namespace":  {"it holds in one", workloads, "shop", "the ServiceAccount cannot, in namespace \"tools\": create, get deployments.apps (a, b), replicasets.apps (a, b)" + grant, false},
		"a group of another": {"the group differs", workloads, "shop", "the ServiceAccount cannot, in namespace \"shop\": create, get deployments.example.org (a, b), replicasets.apps (a, b)" + grant, false},
		"URL":                {"all is said", metrics, "", "the ServiceAccount cannot grant what it does not hold, in the cluster: get /metrics for ClusterRole x, ClusterRole y and 2 more" + grant, true},
		"another URL":        {"it is not of the rule", metrics, "", "the ServiceAccount cannot, in the cluster: get /metrics, /healthz" + grant, false},
	} {
		t.Run(name, func(t *testing.T) {
			rule := requiredRule{role: &unstructured.Unstructured{}, PolicyRule: c.rule}
			rule.role.SetNamespace(c.namespace)
			if wrong := rule.wrong(c.message); (len(wrong) == 0) != c.right {
				t.Errorf("found wrong: %q: %s", wrong, c.reason)
			}
		})
	}
}
