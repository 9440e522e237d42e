// SPDX-License-Identifier: Apache-2.0

package impact_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/plan/impact"
	"github.com/satchel-dev/satchel/internal/apply/rights"
)

// random makes small sets of roles and bindings, so that many of them overlap.
type random struct{ *rand.Rand }

func (r random) of(words ...string) string { return words[r.IntN(len(words))] }

func (r random) rule() map[string]any {
	list := func(words ...string) []any { return []any{r.of(words...), r.of(words...)} }
	if r.IntN(8) == 0 {
		return map[string]any{"nonResourceURLs": list("/metrics", "/m*", "*"), "verbs": list("get", "*")}
	}
	rule := map[string]any{
		"apiGroups": list("", "apps", "*"), "resources": list("pods", "pods/log", "*/log", "*"), "verbs": list("get", "list", "*"),
	}
	if r.IntN(3) == 0 {
		rule["resourceNames"] = list("a", "b", "")
	}
	return rule
}

func (r random) object(kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: fields}
	object.SetAPIVersion(rbacv1.SchemeGroupVersion.String())
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func (r random) role(i int) *unstructured.Unstructured {
	rules := []any{}
	for range r.IntN(3) {
		rules = append(rules, r.rule())
	}
	name := fmt.Sprintf("role-%d", i)
	if r.IntN(2) == 0 {
		return r.object("Role", r.of("one", "two"), name, map[string]any{"rules": rules})
	}
	role := r.object("ClusterRole", "", name, map[string]any{"rules": rules})
	if r.IntN(3) == 0 {
		role.Object["aggregationRule"] = map[string]any{"clusterRoleSelectors": []any{map[string]any{"matchLabels": map[string]any{"into": r.of("x", "y")}}}}
	}
	role.SetLabels(map[string]string{r.of("into", "rbac.authorization.k8s.io/aggregate-to-admin"): r.of("x", "y", "true")})
	return role
}

func (r random) binding(i int) *unstructured.Unstructured {
	kind, namespace := "ClusterRoleBinding", ""
	if r.IntN(2) == 0 {
		kind, namespace = "RoleBinding", r.of("one", "two")
	}
	return r.object(kind, namespace, fmt.Sprintf("binding-%d", i), map[string]any{
		"roleRef":  map[string]any{"kind": r.of("Role", "ClusterRole"), "name": fmt.Sprintf("role-%d", r.IntN(6))},
		"subjects": []any{map[string]any{"kind": r.of("ServiceAccount", "User", "Group"), "name": r.of("a", "b"), "namespace": r.of("one", "two")}},
	})
}

func (r random) world() []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	for i := range 5 {
		list = append(list, r.role(i), r.binding(i))
	}
	return list
}

// within returns the permissions that others do not cover.
func within(less, more []impact.Permission) string {
	for _, p := range less {
		held, unknown := rights.Held{}, []string(nil)
		for _, q := range more {
			if q.Subject == p.Subject && (q.Namespace == "" || q.Namespace == p.Namespace) {
				held[q.Namespace] = rights.NewRules(rulesOf(q.Rights))
				unknown = append(unknown, q.Unknown...)
			}
		}
		for _, right := range p.Rights {
			if !held.Covers(p.Namespace, right) {
				return fmt.Sprintf("%s: %+v", p, right)
			}
		}
		for _, text := range p.Unknown {
			if !slices.Contains(unknown, text) {
				return p.String()
			}
		}
	}
	return ""
}

func rulesOf(list []rights.Right) []rbacv1.PolicyRule {
	rules := make([]rbacv1.PolicyRule, 0, len(list))
	for _, right := range list {
		rule := rbacv1.PolicyRule{Verbs: []string{right.Verb}, NonResourceURLs: []string{right.URL}}
		if right.URL == "" {
			rule = rbacv1.PolicyRule{
				Verbs: []string{right.Verb}, APIGroups: []string{right.Group}, Resources: []string{right.Resource}, ResourceNames: right.Names(),
			}
		}
		rules = append(rules, rule)
	}
	return rules
}

// For any roles and bindings: without a difference nothing is new; an additional rule
// never reduces what is new; and the words do not depend on the order.
func FuzzPermissions(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := random{rand.New(rand.NewPCG(seed, 1))}
		before, after := r.world(), r.world()
		if got := impact.Of(before, before, "one"); !got.None() {
			t.Errorf("the same objects: %v", got)
		}
		less := impact.Of(before, after, "one").Permissions
		mixed := slices.Clone(after)
		r.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		if again := impact.Of(before, mixed, "one").Permissions; fmt.Sprint(again) != fmt.Sprint(less) {
			t.Errorf("the order matters:\n%v\n%v", less, again)
		}
		role := after[2*r.IntN(5)]
		role.Object["rules"] = append(role.Object["rules"].([]any), r.rule())
		if missing := within(less, impact.Of(before, after, "one").Permissions); missing != "" {
			t.Errorf("with one more rule in %s this is no longer told: %s", role.GetName(), missing)
		}
	})
}

// A bundle that is written to take long is compared in limited time, and the rest counts as new.
func TestPermissionsAreBounded(t *testing.T) {
	r := random{rand.New(rand.NewPCG(1, 1))}
	names := make([]any, 5_000)
	for i := range names {
		names[i] = fmt.Sprintf("name-%d", i)
	}
	role := func(verb string) *unstructured.Unstructured {
		return r.object("ClusterRole", "", "large", map[string]any{"rules": []any{map[string]any{
			"apiGroups": []any{""}, "resources": []any{"pods"}, "resourceNames": names, "verbs": []any{verb},
		}}})
	}
	var bindings []*unstructured.Unstructured
	for i := range 5_000 {
		bindings = append(bindings, r.object("RoleBinding", fmt.Sprintf("ns-%d", i), "b", map[string]any{
			"roleRef":  map[string]any{"kind": "ClusterRole", "name": "large"},
			"subjects": []any{map[string]any{"kind": "User", "name": "a"}},
		}))
	}
	start := time.Now()
	got := impact.Of(slices.Concat(bindings, []*unstructured.Unstructured{role("get")}), slices.Concat(bindings, []*unstructured.Unstructured{role("list")}), "one")
	took := time.Since(start)
	t.Log(took)
	if took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	if len(got.Permissions) < len(bindings) {
		t.Errorf("%d of %d places are named", len(got.Permissions), len(bindings))
	}
}
