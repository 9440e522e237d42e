// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/rights"
)

// numbered are strings that differ in their number.
func numbered(format string, count int) []string {
	texts := make([]string, count)
	for i := range texts {
		texts[i] = fmt.Sprintf(format, i)
	}
	return texts
}

// allocated is how many bytes a function allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Permissions are found by lookup, not by search: for as many rules as fit into
// one Role, and as many objects as fit into a bundle.
func TestMissingOfManyRulesAndObjects(t *testing.T) {
	var rules []rbacv1.PolicyRule
	for _, name := range numbered("held-%d", 8_000) {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{name}, Verbs: []string{"get"},
		})
	}
	var needs []rights.Need
	for _, name := range numbered("wanted-%d", 25_000) {
		for _, verb := range []string{"create", "delete", "get", "patch"} {
			needs = append(needs, rights.Need{Namespace: "shop", Right: rights.Right{Verb: verb, Resource: "secrets", Name: name}})
		}
	}
	start := time.Now()
	missing := rights.FindMissing(needs, nil, rights.Held{"shop": rights.NewRules(rules)})
	took := time.Since(start)
	t.Log(took)
	if len(missing.Needs) != len(needs) {
		t.Errorf("%d of %d needs are missing", len(missing.Needs), len(needs))
	}
	if took > 6*time.Second { // scanning takes three times that
		t.Errorf("it took %s", took)
	}
}

// However many bindings name a role, its missing permissions are computed once a place.
func TestMissingOfManyBindingsOfARole(t *testing.T) {
	all := make([]rights.Right, 0, rights.Limit)
	for _, name := range numbered("name-%d", rights.Limit) {
		all = append(all, rights.Right{Verb: "get", Resource: "pods", Name: name})
	}
	role := inventory.ID{Group: rbacv1.GroupName, Kind: "ClusterRole", Name: "r"}
	var demands []rights.Demand
	for _, name := range numbered("b-%d", 1_000) {
		demands = append(demands, rights.Demand{
			Object: inventory.ID{Group: rbacv1.GroupName, Kind: "RoleBinding", Namespace: name, Name: "b"}, Role: role,
			Namespace: name, Rights: all, Instead: rights.Right{Verb: "bind", Group: rbacv1.GroupName, Resource: "clusterroles", Name: "r"},
		})
	}
	held := rights.Held{"": rights.NewRules([]rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"name-1"}, Verbs: []string{"get"},
	}})}
	var missing rights.Missing
	bytes := allocated(func() { missing = rights.FindMissing(nil, demands, held) })
	t.Logf("%d MiB", bytes>>20)
	if len(missing.Demands) != len(demands) {
		t.Fatalf("%d of %d demands are missing", len(missing.Demands), len(demands))
	}
	for _, demand := range missing.Demands {
		if len(demand.Rights) != rights.MostMissing {
			t.Fatalf("%s lacks %d rights", demand.Object, len(demand.Rights))
		}
	}
	if bytes > 8<<20 { // a list each is 1.6 GB
		t.Errorf("%d MiB were allocated", bytes>>20)
	}
}

// Of the permissions that are missing at a place only as many are kept as users read, and at least one for each object.
func TestMissingIsBounded(t *testing.T) {
	var demands []rights.Demand
	for i, name := range numbered("r%d", 20) {
		demand := rights.Demand{Object: inventory.ID{Group: rbacv1.GroupName, Kind: "Role", Namespace: "shop", Name: name}, Namespace: "shop"}
		demand.Instead = rights.Right{Verb: "escalate", Group: rbacv1.GroupName, Resource: "roles", Name: name}
		for _, resource := range numbered(fmt.Sprintf("r%d-%%d", i), rights.Limit/20) {
			demand.Rights = append(demand.Rights, rights.Right{Verb: "get", Resource: resource})
		}
		demands = append(demands, demand)
	}
	held := rights.Held{"shop": rights.NewRules([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"r3-0"}, Verbs: []string{"get"}}})}
	missing, sum := rights.FindMissing(nil, demands, held), 0
	for _, demand := range missing.Demands {
		if len(demand.Rights) == 0 || demand.Rights[0].Resource == "r3-0" {
			t.Errorf("%s lacks %v", demand.Object, demand.Rights)
		}
		sum += len(demand.Rights)
	}
	if len(missing.Demands) != 20 || sum > rights.MostMissing+20 {
		t.Errorf("%d rights of %d objects", sum, len(missing.Demands))
	}
}

// Words for the permissions on as many objects as fit into a bundle take time in
// proportion to them.
func TestWordsForManyObjects(t *testing.T) {
	var list []rights.Right
	for _, name := range numbered("o-%d", 25_000) {
		for _, verb := range []string{"create", "delete", "get", "patch"} {
			list = append(list, rights.Right{Verb: verb, Resource: "secrets", Name: name})
		}
	}
	var words []string
	start := time.Now()
	bytes := allocated(func() { words = rights.Words(list, nil) })
	took := time.Since(start)
	t.Logf("%s, %d MiB", took, bytes>>20)
	if len(words) != 1 || words[0] != "create, delete, get, patch secrets (o-0, o-1, o-10, o-100, o-1000 and 24995 more)" {
		t.Errorf("got: %.300s", words)
	}
	if bytes > 512<<20 { // lists that grow name by name are 5 GB
		t.Errorf("%d MiB were allocated", bytes>>20)
	}
}

// A role that is bound in many places is refused before its permissions are counted at
// each of them.
func TestRightsOfManyBindings(t *testing.T) {
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [%s], verbs: [get]}]",
		strings.Join(numbered("r%d", 10_000), ","))
	for _, name := range numbered("n%d", 30) {
		fmt.Fprintf(&text, "\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b, namespace: %s}\n"+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}", name)
	}
	r := request(t, text.String())
	var err error
	bytes := allocated(func() { _, err = rights.Of(r) })
	if err == nil || !strings.Contains(err.Error(), "bound in so many places") || bytes > 64<<20 {
		t.Errorf("%d MiB were allocated, and %v", bytes>>20, err)
	}
	r.Objects = r.Objects[:11] // the role and ten bindings
	if _, err := rights.Of(r); err != nil {
		t.Error(err)
	}
}

// Of the permissions of an account as many are kept as a bundle may demand; beyond that
// the rules say that they are partial.
func TestRulesKeepSoMuch(t *testing.T) {
	wide := rbacv1.PolicyRule{APIGroups: numbered("g%d", 100), Resources: numbered("r%d", 100), Verbs: numbered("v%d", 100)}
	small := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}
	var rules *rights.Rules
	bytes := allocated(func() { rules = rights.NewRules([]rbacv1.PolicyRule{wide, wide, small}) })
	if bytes > 16<<20 {
		t.Errorf("%d MiB were allocated", bytes>>20)
	}
	if !rules.Partial() || rules.Cover(rights.Right{Verb: "v1", Group: "g1", Resource: "r1"}) {
		t.Error("a million rights are kept")
	}
	if get := (rights.Right{Verb: "get", Resource: "pods"}); !rules.Cover(get) || rights.NewRules([]rbacv1.PolicyRule{small}).Partial() {
		t.Error("a rule that fits is not kept, or said to be partial")
	}
	var none *rights.Rules
	if none.Partial() {
		t.Error("nothing is partial")
	}
	urls := rights.NewRules([]rbacv1.PolicyRule{{NonResourceURLs: numbered("/%d", rights.Limit/100+1), Verbs: []string{"get"}}})
	if !urls.Partial() {
		t.Error("URLs, which are compared with one another, are kept without a limit")
	}
}
