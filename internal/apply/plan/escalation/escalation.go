// SPDX-License-Identifier: Apache-2.0

package escalation

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
)

// Finding is one way in which an object gets more power than before.
type Finding struct {
	Object inventory.ID
	What   string // "is new", "container web: is privileged"
}

// String is the finding for people.
func (f Finding) String() string { return f.Object.String() + " " + f.What }

const satchelPrefix = "satchel.dev/"

// tracking are Satchel's own tracking labels, which say nothing about a Namespace.
var tracking = []string{v1alpha1.DeploymentLabel, v1alpha1.NamespaceLabel}

// guardGroups are the API groups with objects that decide what is admitted, which server answers for an
// API, who is authenticated, and what is installed and approved.
var guardGroups = []string{v1alpha1.GroupVersion.Group, "admissionregistration.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io"}

// Of compares the live objects with the desired ones, as rendered. Namespaced objects
// without a namespace are in installNamespace. Sorted by object. Removed objects are not
// compared: their deletion is always an escalation.
func Of(before, after []*unstructured.Unstructured, installNamespace string) []Finding {
	was, will := index(before, installNamespace), index(after, installNamespace)
	brought := accounts(will)
	var findings []Finding
	for _, id := range slices.SortedFunc(maps.Keys(will), inventory.ID.Compare) {
		words := slices.Concat(guard(id, was[id], will[id]), labels(id, was[id], will[id]), pods(id, was[id], will[id], brought))
		for _, what := range words {
			findings = append(findings, Finding{Object: id, What: what})
		}
	}
	return findings
}

// objects by identity. It is not known here whether a kind is namespaced: objects without a namespace
// are filed under the install namespace on both sides.
type objects map[inventory.ID]*unstructured.Unstructured

func index(list []*unstructured.Unstructured, installNamespace string) objects {
	all := objects{}
	for _, object := range list {
		if object == nil {
			continue
		}
		id := inventory.IDOf(object)
		if id.Namespace == "" && !ownership.IsNamespace(id) && !slices.Contains(guardGroups[1:], id.Group) {
			id.Namespace = installNamespace
		}
		all[id] = object
	}
	return all
}

// guard reports a new or changed object of a guarding group.
func guard(id inventory.ID, was, will *unstructured.Unstructured) []string {
	switch {
	case !slices.Contains(guardGroups, id.Group):
		return nil
	case was == nil:
		return []string{"is new"}
	case !reflect.DeepEqual(content(was), content(will)):
		return []string{"changes"}
	}
	return nil
}

// content is an object without its metadata and status.
func content(object *unstructured.Unstructured) map[string]any {
	bare := maps.Clone(object.Object)
	delete(bare, "metadata")
	delete(bare, "status")
	return bare
}

// labels reports labels of a Namespace that are added, changed or removed.
func labels(id inventory.ID, was, will *unstructured.Unstructured) []string {
	if !ownership.IsNamespace(id) {
		return nil
	}
	before, after := decisive(was), decisive(will)
	names := maps.Clone(before)
	maps.Copy(names, after)
	var words []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		former, had := before[name]
		value, has := after[name]
		switch {
		case !had:
			words = append(words, fmt.Sprintf("gets the label %s=%s", name, value))
		case !has:
			words = append(words, fmt.Sprintf("loses the label %s=%s", name, former))
		case former != value:
			words = append(words, fmt.Sprintf("changes the label %s from %s to %s", name, former, value))
		}
	}
	return words
}

// decisive are the labels of a Namespace that decide which Pods are admitted there.
func decisive(namespace *unstructured.Unstructured) map[string]string {
	found := map[string]string{}
	if namespace == nil {
		return found
	}
	for name, value := range namespace.GetLabels() {
		if strings.HasPrefix(name, ownership.PodSecurityPrefix) || strings.HasPrefix(name, satchelPrefix) && !slices.Contains(tracking, name) {
			found[name] = value
		}
	}
	return found
}

// accounts are the ServiceAccounts among the objects.
func accounts(all objects) map[[2]string]bool {
	found := map[[2]string]bool{}
	for id := range all {
		if id.Group == "" && id.Kind == "ServiceAccount" {
			found[[2]string{id.Namespace, id.Name}] = true
		}
	}
	return found
}
