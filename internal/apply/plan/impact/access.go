// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/rights"
)

const (
	kindRole               = "Role"
	kindClusterRole        = "ClusterRole"
	kindRoleBinding        = "RoleBinding"
	kindClusterRoleBinding = "ClusterRoleBinding"
)

var clusterKinds = map[schema.GroupKind]bool{
	{Group: rbacv1.GroupName, Kind: kindClusterRole}:                  true,
	{Group: rbacv1.GroupName, Kind: kindClusterRoleBinding}:           true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
}

var namespacedAccess = map[schema.GroupKind]bool{
	{Group: rbacv1.GroupName, Kind: kindRole}: true, {Group: rbacv1.GroupName, Kind: kindRoleBinding}: true,
}

// part are the permissions of one role by its own rules. Parts of the same key allow the same.
type part struct {
	key    string
	rights []rights.Right
	rules  *rights.Rules
	// opaque describes unknown permissions; else it is empty.
	opaque string
}

// access are the permissions of subjects, by the roles and bindings of one side.
type access struct {
	roles  map[inventory.ID]*role
	grants map[Subject]map[string][]*part // by namespace; "" is the cluster
}

// role is a Role or ClusterRole. A ClusterRole with an aggregationRule has its own part,
// one that stands for the rules from outside the bundle, and those of the roles that it selects.
type role struct {
	id        inventory.ID
	labels    labels.Set
	own       *part
	selectors []labels.Selector
	outside   *part
}

// mostSelections is the maximum number of pairs of an aggregating and another ClusterRole that are
// compared. In a larger bundle the permissions of aggregating roles are unknown.
const mostSelections = 100_000

func accessOf(all objects) access {
	a := access{roles: map[inventory.ID]*role{}, grants: map[Subject]map[string][]*part{}}
	sorted, left, aggregating := ids(nil, all), rights.Limit, 0
	for _, id := range sorted {
		if id.Group != rbacv1.GroupName || id.Kind != kindRole && id.Kind != kindClusterRole {
			continue
		}
		a.roles[id] = readRole(id, all[id], &left)
		if a.roles[id].selectors != nil {
			aggregating++
		}
	}
	if aggregating*len(a.roles) > mostSelections {
		a.seal()
	}
	for _, id := range sorted {
		if role := a.roles[id]; role != nil {
			a.held(role)
		}
	}
	for _, id := range sorted {
		if id.Kind == kindRoleBinding || id.Kind == kindClusterRoleBinding {
			a.bind(id, all[id])
		}
	}
	return a
}

// seal makes the permissions of aggregating roles unknown. Their key changes with
// every role that they might select.
func (a access) seal() {
	var keys []string
	for id, role := range a.roles {
		keys = append(keys, id.String(), role.labels.String(), role.own.key)
	}
	slices.Sort(keys)
	all := digest(keys)
	for _, role := range a.roles {
		if role.selectors != nil {
			role.outside.key += all
			role.selectors = []labels.Selector{}
		}
	}
}

// readRole reads a role; its permissions count towards the remaining limit.
func readRole(id inventory.ID, object *unstructured.Unstructured, left *int) *role {
	result := &role{id: id, labels: object.GetLabels()}
	raw := map[string]any{"rules": object.Object["rules"], "aggregationRule": object.Object["aggregationRule"]}
	var read rbacv1.ClusterRole // a Role has the same rules
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &read); err != nil {
		result.own = &part{key: digest(raw), opaque: allOf(id, "with rules that cannot be read")}
		return result
	}
	singles, err := rights.Singles(read.Rules)
	if *left -= len(singles); err != nil || *left < 0 {
		result.own = &part{key: digest(raw), opaque: allOf(id, "with too many rules to compare")}
	} else {
		result.own = &part{key: digest(read.Rules), rights: singles, rules: rights.NewRules(read.Rules)}
	}
	if id.Kind == kindClusterRole && read.AggregationRule != nil && len(read.AggregationRule.ClusterRoleSelectors) > 0 {
		result.outside = &part{
			key: digest([]any{id, read.AggregationRule}), opaque: allOf(id, "which collects the rules of others"),
		}
		result.selectors = selectorsOf(read.AggregationRule.ClusterRoleSelectors)
	}
	return result
}

// selectorsOf leaves out invalid selectors; the API server refuses such a role.
func selectorsOf(list []metav1.LabelSelector) []labels.Selector {
	selectors := make([]labels.Selector, 0, len(list))
	for i := range list {
		if selector, err := metav1.LabelSelectorAsSelector(&list[i]); err == nil {
			selectors = append(selectors, selector)
		}
	}
	return selectors
}

// parts of a role: its own, and those of all roles that it aggregates.
func (a access) parts(from *role) []*part {
	seen, queue := map[inventory.ID]bool{from.id: true}, []*role{from}
	var parts []*part
	for len(queue) > 0 {
		current := queue[0]
		queue, parts = queue[1:], append(parts, current.own)
		if current.outside == nil {
			continue
		}
		parts = append(parts, current.outside)
		for id, other := range a.roles {
			if id.Kind == kindClusterRole && !seen[id] && current.selects(other) {
				seen[id] = true
				queue = append(queue, other)
			}
		}
	}
	slices.SortFunc(parts, func(a, b *part) int { return strings.Compare(a.key, b.key) })
	return parts
}

func (r *role) selects(other *role) bool {
	return slices.ContainsFunc(r.selectors, func(s labels.Selector) bool { return s.Matches(other.labels) })
}

// aggregateTo is the prefix of the labels by which the ClusterRoles of every cluster aggregate rules.
const aggregateTo = "rbac.authorization.k8s.io/aggregate-to-"

// held adds the permissions of a role to the subjects that others than the bundle bind to it, or
// to a role of the cluster that aggregates its rules.
func (a access) held(of *role) {
	a.add(Subject{Kind: of.id.Kind, Namespace: of.id.Namespace, Name: of.id.Name}, of.id.Namespace, a.parts(of))
	for label, value := range of.labels {
		if into, found := strings.CutPrefix(label, aggregateTo); found && value == "true" && of.id.Kind == kindClusterRole {
			a.add(Subject{Kind: kindClusterRole, Name: into}, "", a.parts(of))
		}
	}
}

func (a access) add(to Subject, namespace string, parts []*part) {
	if a.grants[to] == nil {
		a.grants[to] = map[string][]*part{}
	}
	a.grants[to][namespace] = append(a.grants[to][namespace], parts...)
}

// bind adds the permissions of a binding to its subjects. A binding without a role is refused by
// the API server; the permissions of a role outside of the bundle are unknown.
func (a access) bind(id inventory.ID, object *unstructured.Unstructured) {
	kind, _, _ := unstructured.NestedString(object.Object, "roleRef", "kind")
	of := inventory.ID{Group: rbacv1.GroupName, Kind: kind}
	of.Name, _, _ = unstructured.NestedString(object.Object, "roleRef", "name")
	if kind == kindRole {
		of.Namespace = id.Namespace
	}
	parts := []*part{{key: "role " + of.String(), opaque: allOf(of, "which is not among the objects")}}
	if known := a.roles[of]; known != nil {
		parts = a.parts(known)
	}
	for _, item := range items(object.Object, "subjects") {
		a.add(subjectOf(item, id.Namespace), id.Namespace, parts)
	}
}

// allOf describes unknown permissions of a role, and why they are unknown.
func allOf(id inventory.ID, why string) string {
	name := id.Name
	if id.Namespace != "" {
		name = id.Namespace + "/" + name
	}
	return fmt.Sprintf("all that %.60s %q allows, %s", cmp.Or(id.Kind, "role"), fmt.Sprintf("%.253s", name), why)
}

// digest of anything that can be written as JSON.
func digest(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		encoded = fmt.Append(nil, value)
	}
	return fmt.Sprintf("%x", sha256.Sum256(encoded))
}
