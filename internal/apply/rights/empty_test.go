// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/satchel-dev/satchel/internal/apply/rights"
)

func granting(rule string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: apps}\nrules: [" + rule + "]"
}

// An empty string in a rule is not printed as something wider: it is refused.
func TestEmptyWordsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ reason, rule, part string }{
		"name":       {"the empty name is not all names", `{apiGroups: [""], resources: [secrets], resourceNames: [""], verbs: [get]}`, "resource name"},
		"among some": {"the others do not hide it", `{apiGroups: [""], resources: [secrets], resourceNames: [a, ""], verbs: [get]}`, "resource name"},
		"verb":       {"no verb is no right", `{apiGroups: [""], resources: [secrets], verbs: [get, ""]}`, "verb"},
		"resource":   {"no resource is no right", `{apiGroups: [""], resources: [secrets, ""], verbs: [get]}`, "resource"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rights.Manifests(request(t, granting(tc.rule)))
			var text *rights.TextError
			if !errors.As(err, &text) || text.Part != tc.part || text.Value != "" {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
	if _, err := rights.Manifests(request(t, granting(`{apiGroups: [""], resources: [secrets], verbs: [get]}`))); err != nil {
		t.Errorf("the core group has an empty name: %v", err)
	}
}

// For a role with an empty name the preflight reports neither permissions that the API server does not check,
// nor more held permissions than there are.
func TestEmptyNameIsNotAllNames(t *testing.T) {
	r := request(t, granting(`{apiGroups: [""], resources: [secrets], resourceNames: [""], verbs: [get]}`))
	secrets := func(names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: names, Verbs: []string{"get"}}
	}
	for name, tc := range map[string]struct {
		reason string
		held   rbacv1.PolicyRule
		want   []string
	}{
		"the same":     {"the API server compares the lists", secrets(""), nil},
		"all":          {"all names are more", secrets(), nil},
		"another name": {"it is not in the list", secrets("a"), []string{`get secrets ("")`}},
	} {
		t.Run(name, func(t *testing.T) {
			roles := rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"create", "delete", "get", "patch"}}
			missing, err := r.Missing(rights.HeldBy([]rights.Grant{{Namespace: "apps", Rules: []rbacv1.PolicyRule{tc.held, roles}}}))
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, demand := range missing.Demands {
				found = append(found, rights.Words(demand.Rights, nil)...)
			}
			if diff := cmp.Diff(tc.want, found); diff != "" || len(missing.Needs) > 0 {
				t.Errorf("%s (-want +got):\n%s%v", tc.reason, diff, missing.Needs)
			}
		})
	}
	holder := rights.HeldBy([]rights.Grant{{Namespace: "apps", Rules: []rbacv1.PolicyRule{secrets("")}}})
	if wide := (rights.Right{Verb: "get", Resource: "secrets"}); holder.Covers("apps", wide) || strings.Join(wide.Names(), "") != "" {
		t.Error("who may use the empty name may use all names")
	}
}
