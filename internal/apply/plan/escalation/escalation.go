// SPDX-License-Identifier: Apache-2.0

package escalation

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
)

// Finding is one thing in an object that is not known to be harmless, and that the applied revision did not have.
type Finding struct {
	Object inventory.ID
	What   string // "is new: ...", "container web: is privileged"
}

// String is the finding for people.
func (f Finding) String() string { return f.Object.String() + " " + f.What }

// Of compares the applied objects with the desired ones, both as rendered or both as the API server completes them. Namespaced
// objects without a namespace are in installNamespace. Sorted by object. Removed objects are not compared: their deletion is
// always an escalation.
func Of(before, after []*unstructured.Unstructured, installNamespace string) []Finding {
	was, will := read(before, installNamespace), read(after, installNamespace)
	var findings []Finding
	for _, id := range slices.SortedFunc(maps.Keys(will.objects), inventory.ID.Compare) {
		if reflect.DeepEqual(was.objects[id], will.objects[id]) {
			continue
		}
		for _, what := range judge(was, will, id) {
			findings = append(findings, Finding{Object: will.displayed(id), What: what})
		}
	}
	return findings
}

// side is a bundle before or after.
type side struct {
	installNamespace string
	// objects by identity. It is not known whether a kind is namespaced: objects without a namespace are filed under the
	// install namespace on both sides.
	objects map[inventory.ID]*unstructured.Unstructured
	// custom tells which kinds the CRDs of the bundle define, and whether they are namespaced.
	custom map[schema.GroupKind]bool
	facts  map[inventory.ID]*facts
	// references and accounts of all objects.
	references map[reference]bool
	accounts   map[string]bool
}

func read(list []*unstructured.Unstructured, installNamespace string) *side {
	s := &side{
		installNamespace: installNamespace, objects: map[inventory.ID]*unstructured.Unstructured{}, custom: map[schema.GroupKind]bool{},
		facts: map[inventory.ID]*facts{}, references: map[reference]bool{}, accounts: map[string]bool{},
	}
	for _, object := range list {
		if object == nil {
			continue
		}
		id := inventory.IDOf(object)
		if crds.IsCRD(id) {
			s.define(object)
		}
		id.Namespace = cmp.Or(id.Namespace, installNamespace)
		s.objects[id] = object
	}
	for id, object := range s.objects {
		found := factsOf(object, s.rule(id))
		s.facts[id] = found
		maps.Copy(s.references, found.references)
		for _, account := range found.accounts {
			s.accounts[account] = true
		}
		if id.GroupKind() == (schema.GroupKind{Kind: "ServiceAccount"}) && id.Namespace == installNamespace {
			s.accounts[id.Name] = true
		}
	}
	return s
}

// define records the kind of a CRD.
func (s *side) define(crd *unstructured.Unstructured) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	if group != v1alpha1.GroupVersion.Group {
		s.custom[schema.GroupKind{Group: group, Kind: kind}] = scope == "Namespaced"
	}
}

// rule is how an object is judged. The first line that holds decides.
//
//	RBAC, CRDs                                     by package impact; here only their labels and annotations
//	in another namespace, or one of the system     none: every change counts
//	a kind on the list                             its fields
//	a namespaced kind of a CRD of the bundle       all fields but those of Pods, at any path
//	else                                           none: every change counts
func (s *side) rule(id inventory.ID) rule {
	kind := id.GroupKind()
	known, listed := kinds[kind]
	switch {
	case kind.Group == rbacGroup || crds.IsCRD(id):
		return rule{fields: anything, strictKeys: kind.Kind == "ClusterRole"}
	case id.Namespace != s.installNamespace:
		return rule{why: fmt.Sprintf("it is in the namespace %s, not in the install namespace", id.Namespace)}
	case ownership.IsNamespace(id):
		return rule{why: "a Namespace is cluster-scoped", strictKeys: true}
	case isSystemNamespace(id.Namespace):
		return rule{why: fmt.Sprintf("it is in the namespace %s, which belongs to the cluster", id.Namespace)}
	case listed:
		return known
	case s.custom[kind]:
		return rule{fields: custom}
	}
	return rule{why: cmp.Or(reasons[kind], "its kind is not on the list of harmless kinds")}
}

// displayed is an object as messages name it: the namespace is left out where the kind may be cluster-scoped.
func (s *side) displayed(id inventory.ID) inventory.ID {
	_, listed := kinds[id.GroupKind()]
	if s.objects[id].GetNamespace() == "" && !listed && !s.custom[id.GroupKind()] {
		id.Namespace = ""
	}
	return id
}

// judge lists what in an object is not known to be harmless and was not in the applied revision.
func judge(was, will *side, id inventory.ID) []string {
	before, after := was.objects[id], will.objects[id]
	rule := will.rule(id)
	had, has := was.facts[id], will.facts[id]
	if had == nil {
		had = newFacts()
	}
	if rule.why == "" {
		words := rule.onCreation(before, id)
		return slices.Concat(words, newReferences(was, will, has), newAccounts(was, had, has), differences(had, has))
	}
	switch {
	case before == nil:
		return append([]string{"is new: " + rule.why}, differences(had, has)...)
	case !reflect.DeepEqual(content(before), content(after)):
		return append([]string{"changes: " + rule.why}, differences(had, has)...)
	}
	return differences(had, has)
}

// content is an object without its metadata and status.
func content(object *unstructured.Unstructured) map[string]any {
	bare := maps.Clone(object.Object)
	delete(bare, "metadata")
	delete(bare, "status")
	return bare
}

// reference is an object in the install namespace that another one reads, mounts or scales.
type reference struct{ group, kind, name string }

// published is in each namespace, and contains nothing secret.
const published = "kube-root-ca.crt"

// newReferences lists references to objects that neither the bundle nor the applied revision has.
func newReferences(was, will *side, has *facts) []string {
	var words []string
	for ref := range has.references {
		id := inventory.ID{Group: ref.group, Kind: ref.kind, Namespace: will.installNamespace, Name: ref.name}
		if was.references[ref] || will.objects[id] != nil || ref.kind == configMapKind && ref.name == published {
			continue
		}
		words = append(words, fmt.Sprintf("refers to the %s %s, which is not in the bundle, and to which the applied revision does not refer", ref.kind, ref.name))
	}
	slices.Sort(words)
	return words
}

// newAccounts lists ServiceAccounts of Pods that are not the applied ones.
func newAccounts(was *side, had, has *facts) []string {
	var words []string
	for _, place := range slices.Sorted(maps.Keys(has.accounts)) {
		account := has.accounts[place]
		former, ran := had.accounts[place]
		switch {
		case ran && former != account:
			words = append(words, fmt.Sprintf("runs as the ServiceAccount %s, not %s any more", account, former))
		case !ran && !was.accounts[account]:
			words = append(words, fmt.Sprintf("runs as the ServiceAccount %s, which the applied revision neither contains nor uses", account))
		}
	}
	return words
}

// isSystemNamespace tells whether a namespace configures the cluster, whatever the kinds in it.
func isSystemNamespace(name string) bool {
	return strings.HasPrefix(name, "kube-") || strings.HasPrefix(name, "openshift-")
}
