// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
	"github.com/satchel-dev/satchel/internal/apply/rights"
)

// objects reads manifests. Objects with a namespace are namespaced; resources follow the usual rule.
func objects(t testing.TB, manifests string) []plan.Object {
	t.Helper()
	var list []plan.Object
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if len(object.Object) == 0 {
			continue
		}
		gvk := object.GroupVersionKind()
		list = append(list, plan.Object{ID: inventory.IDOf(object), Desired: object, Kind: plan.Kind{
			Resource:   gvk.GroupVersion().WithResource(rights.Plural(gvk.Kind)),
			Namespaced: object.GetNamespace() != "",
		}})
	}
	return list
}

func request(t testing.TB, manifests string) rights.Request {
	t.Helper()
	return rights.Request{
		Deployment: inventory.Owner{Namespace: "team", Name: "app"}, ServiceAccount: "installer", InstallNamespace: "apps",
		Objects: objects(t, manifests), Strict: true,
	}
}

// lines writes grants one rule a line: "apps: get,list pods.core [a,b]".
func lines(grants []rights.Grant) []string {
	var list []string
	for _, grant := range grants {
		for _, rule := range grant.Rules {
			line := fmt.Sprintf("%s: %s", grant.Namespace, strings.Join(rule.Verbs, ","))
			for _, part := range [][]string{rule.APIGroups, rule.Resources, rule.NonResourceURLs} {
				if len(part) > 0 {
					line += " " + strings.Join(part, ",")
				}
			}
			if len(rule.ResourceNames) > 0 {
				line += " [" + strings.Join(rule.ResourceNames, ",") + "]"
			}
			list = append(list, line)
		}
	}
	return list
}

const (
	twoMaps = `
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: apps}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: apps}
---
apiVersion: v1
kind: Service
metadata: {name: elsewhere, namespace: other}
`
	definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: mice.example.org}
spec: {group: example.org, scope: Namespaced, names: {plural: mice, kind: Mouse}, versions: [{name: v1, served: true}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec: {paramKind: {apiVersion: example.org/v1, kind: Mouse}}
`
	roles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: apps}
rules:
- {apiGroups: [""], resources: [pods, secrets], verbs: [get]}
- {apiGroups: [""], resources: [pods], resourceNames: [x], verbs: [get, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: r, namespace: apps}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: c}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get, watch]}
- {nonResourceURLs: [/metrics, /metrics/*], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: c, namespace: apps}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: c}
`
	foreign = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gathering}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: g}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gathering}
`
	almighty = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: root}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
- {nonResourceURLs: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: root}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: root}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: apps}
`
	administrator = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: rbac}
rules:
- {apiGroups: [rbac.authorization.k8s.io], resources: ["*"], verbs: ["*"]}
- {apiGroups: [apps], resources: [deployments], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: rbac}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: rbac}
`
	namespaced = `
apiVersion: v1
kind: Namespace
metadata: {name: own}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: own}
`
)

var bundles = map[string]string{
	"two maps": twoMaps, "definition": definition, "roles": roles, "foreign": foreign, "almighty": almighty,
	"administrator": administrator, "namespaced": namespaced,
	"all": strings.Join([]string{twoMaps, definition, roles, foreign, namespaced}, "\n---\n"),
}

func TestRequired(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		want   []string
	}{
		"two maps": {"objects by name, put together", []string{
			"apps: create,delete,get,patch  configmaps [a,b]",
			"other: create,delete,get,patch  services [elsewhere]",
		}},
		"definition": {"a CRD is never deleted; a policy demands to read its parameters", []string{
			": create,delete,get,patch admissionregistration.k8s.io validatingadmissionpolicies [p]",
			": create,get,patch apiextensions.k8s.io customresourcedefinitions [mice.example.org]",
			": get example.org mice",
		}},
		"roles": {"what the roles grant, at its place, without what something wider covers", []string{
			": get,watch  secrets",
			": create,delete,get,patch rbac.authorization.k8s.io clusterroles [c]",
			": get /metrics,/metrics/*",
			"apps: get  pods",
			"apps: delete  pods [x]",
			"apps: create,delete,get,patch rbac.authorization.k8s.io rolebindings [c,r]",
			"apps: create,delete,get,patch rbac.authorization.k8s.io roles [r]",
		}},
		"foreign": {"unknown rules are covered by bind and escalate, by name", []string{
			": create,delete,get,patch rbac.authorization.k8s.io clusterrolebindings [b,g]",
			": bind,create,delete,escalate,get,patch rbac.authorization.k8s.io clusterroles [gathering]",
			": bind rbac.authorization.k8s.io clusterroles [view]",
			"kube-system: create,delete,get,patch rbac.authorization.k8s.io rolebindings [b]",
			"kube-system: bind rbac.authorization.k8s.io roles [reader]",
		}},
		"almighty":      {"who has everything needs nothing more", []string{": * * *"}},
		"administrator": {"who may escalate and bind need not hold the rest", []string{": * rbac.authorization.k8s.io *"}},
		"namespaced": {"a namespace is an object of the cluster, and no permission holds in it before it exists", []string{
			": create,delete,get,patch  namespaces [own]",
			": create,delete,get,patch  configmaps [a]",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := rights.Of(request(t, bundles[name]))
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(tc.want)
			found := lines(got.Required)
			slices.Sort(found)
			if diff := cmp.Diff(tc.want, found); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRecommended(t *testing.T) {
	got, err := rights.Of(request(t, strings.Join([]string{twoMaps, roles, definition, `
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: other}
`}, "\n---\n")))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		": list,watch admissionregistration.k8s.io validatingadmissionpolicies",
		": list,watch apiextensions.k8s.io customresourcedefinitions",
		": list,watch rbac.authorization.k8s.io clusterroles",
		"apps: list  pods", // to get them is required
		"apps: list,watch  configmaps",
		"apps: get  namespaces [apps]",
		"apps: get,list ,events.k8s.io events",
		"apps: get,list apps replicasets",
		"apps: list,watch rbac.authorization.k8s.io rolebindings,roles",
		"other: get  namespaces [other]",
		"other: list,watch  services", // but no Secrets
	}
	found := lines(got.Recommended)
	slices.Sort(want)
	slices.Sort(found)
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Permissions for objects that an upgrade deletes are needed, too; those for other objects appear once.
func TestGone(t *testing.T) {
	r := request(t, twoMaps)
	r.Gone = objects(t, twoMaps+"\n---\n"+definition+"\n---\n"+`
apiVersion: v1
kind: ConfigMap
metadata: {name: old, namespace: apps}
`)
	got, err := rights.Of(r)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		": delete,get admissionregistration.k8s.io validatingadmissionpolicies [p]",
		": get,patch apiextensions.k8s.io customresourcedefinitions [mice.example.org]",
		"apps: create,delete,get,patch  configmaps [a,b]",
		"apps: delete,get  configmaps [old]",
		"other: create,delete,get,patch  services [elsewhere]",
	}
	if diff := cmp.Diff(want, lines(got.Required)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Where nothing is ever deleted, no permission to delete is needed, except for objects that are
// recreated.
func TestNeverDeleted(t *testing.T) {
	r := request(t, twoMaps)
	r.Gone = objects(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old, namespace: apps}\n")
	for _, c := range []struct {
		pruning pruning.Policy
		deletes bool
	}{
		{pruning.Policy{Disabled: true, Orphan: true}, false},
		{pruning.Policy{Disabled: true, Orphan: true, Definitions: true}, false},
		{pruning.Policy{Disabled: true, Orphan: true, Recreates: true}, true},
		{pruning.Policy{Disabled: true}, true},
		{pruning.Policy{Orphan: true}, true},
	} {
		r.Pruning = c.pruning
		got, err := rights.Of(r)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(lines(got.Required), "\n")
		if strings.Contains(text, "delete") != c.deletes || !strings.Contains(text, "get,patch  configmaps [old]") && !c.deletes {
			t.Errorf("%+v: the rights are\n%s", c.pruning, text)
		}
	}
}

// Removing any single permission from the required ones is noticed.
func TestNothingToSpare(t *testing.T) {
	for name, manifests := range bundles {
		t.Run(name, func(t *testing.T) { NothingToSpare(t, request(t, manifests)) })
	}
}

// NothingToSpare removes every part of every rule, one at a time.
func NothingToSpare(t *testing.T, r rights.Request) {
	t.Helper()
	got, err := rights.Of(r)
	if err != nil {
		t.Fatal(err)
	}
	lacks := func(grants []rights.Grant) bool {
		missing, err := r.Missing(rights.HeldBy(grants))
		if err != nil {
			t.Fatal(err)
		}
		return !missing.None()
	}
	if lacks(got.Required) {
		t.Fatal("what is required is not enough")
	}
	for i, grant := range got.Required {
		for j, rule := range grant.Rules {
			for what, less := range lessThan(rule) {
				grants := slices.Clone(got.Required)
				grants[i].Rules = slices.Concat(grant.Rules[:j], less, grant.Rules[j+1:])
				if !lacks(grants) {
					t.Errorf("without %s of %q %v nothing is missed", what, grant.Namespace, rule)
				}
			}
		}
	}
}

// lessThan returns what remains of a rule without all of it, or without one value.
func lessThan(rule rbacv1.PolicyRule) map[string][]rbacv1.PolicyRule {
	rest := map[string][]rbacv1.PolicyRule{"all": nil}
	for name, field := range map[string]func(*rbacv1.PolicyRule) *[]string{
		"verb": func(r *rbacv1.PolicyRule) *[]string { return &r.Verbs }, "group": func(r *rbacv1.PolicyRule) *[]string { return &r.APIGroups },
		"resource": func(r *rbacv1.PolicyRule) *[]string { return &r.Resources }, "name": func(r *rbacv1.PolicyRule) *[]string { return &r.ResourceNames },
		"url": func(r *rbacv1.PolicyRule) *[]string { return &r.NonResourceURLs },
	} {
		values := *field(&rule)
		for i := range values {
			if len(values) == 1 {
				continue // the same as all of it; and no names are all names
			}
			less := rule
			*field(&less) = slices.Concat(values[:i], values[i+1:])
			rest[name+" "+values[i]] = []rbacv1.PolicyRule{less}
		}
	}
	return rest
}

func TestRefused(t *testing.T) {
	many := make([]string, 0, 400)
	for i := range 400 {
		many = append(many, fmt.Sprintf("x%d", i))
	}
	wide, err := yaml.Marshal(map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "wide"},
		"rules": []any{map[string]any{"apiGroups": many, "resources": many, "verbs": many, "resourceNames": many}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var tooMany *rights.TooManyError
	var text *rights.TextError
	for name, tc := range map[string]struct {
		reason, manifest string
		want             any
	}{
		"lists that multiply": {"400^4 single rights fit into no memory", string(wide), &tooMany},
		"a name of two lines": {"it would be read as something else", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"a\\n---\\nkind: x\", namespace: apps}", &text},
		"no name":             {"no name is every name", "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: apps}", &text},
		"a group of all":      {"* is every group", "apiVersion: \"*/v1\"\nkind: Widget\nmetadata: {name: a, namespace: apps}", &text},
		"a kind of all":       {"* is every resource", "apiVersion: v1\nkind: \"*\"\nmetadata: {name: a, namespace: apps}", &text},
		"a namespace of dots": {"no such namespace exists", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: ../x}", &text},
		"an invisible verb": {"it looks like another one", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\n" +
			"rules: [{apiGroups: [\"\"], resources: [pods], verbs: [\"g\\u202Eet\"]}]", &text},
		"rules that are none":   {"the API server would refuse it, too", "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a, namespace: apps}\nrules: {}", nil},
		"a role that is none":   {"nothing can be bound", "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a, namespace: apps}\nroleRef: {kind: User, name: x}", nil},
		"URLs in one namespace": {"no Role can grant them", "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a, namespace: apps}\nrules: [{nonResourceURLs: [/x], verbs: [get]}]", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rights.Of(request(t, tc.manifest))
			if err == nil || tc.want != nil && !errors.As(err, tc.want) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}

func TestPlural(t *testing.T) {
	for kind, want := range map[string]string{
		"Pod": "pods", "Ingress": "ingresses", "NetworkPolicy": "networkpolicies", "Gateway": "gateways", "Endpoints": "endpoints",
		"Prometheus": "prometheuses", "Mesh": "meshes", "Box": "boxes", "SecurityContextConstraints": "securitycontextconstraints",
	} {
		if got := rights.Plural(kind); got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
}

// A Role inside of a namespace may allow requests for it; its creation needs a cluster-wide permission.
func TestNamespaceIsAuthorizedInItself(t *testing.T) {
	r := request(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: own}")
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"*"}}
	for namespace, enough := range map[string]bool{"": true, "own": true, "apps": false} {
		missing, err := r.Missing(rights.HeldBy([]rights.Grant{{Namespace: namespace, Rules: []rbacv1.PolicyRule{rule}}}))
		if err != nil || missing.None() != enough {
			t.Errorf("held in %q: %v, %v", namespace, missing, err)
		}
	}
}

// Resources are rewritten before a conversion webhook is deleted.
func TestConversionIsRecommended(t *testing.T) {
	got, err := rights.Of(request(t, strings.ReplaceAll(definition, "scope: Namespaced", "scope: Namespaced, conversion: {strategy: Webhook}")))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(lines(got.Recommended), "\n")
	for _, want := range []string{": list,patch example.org mice", ": patch apiextensions.k8s.io customresourcedefinitions/status [mice.example.org]"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in\n%s", want, all)
		}
	}
}
