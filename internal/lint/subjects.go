// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/convert"
)

// subjectsElsewhere warns of bindings to a ServiceAccount of the bundle in a namespace where the bundle does not install it. Of
// registry+v1 bundles the converter does (A4).
func subjectsElsewhere(result convert.Result) []Problem {
	accounts := map[string][]string{} // namespaces by name
	for _, o := range result.Objects {
		if o.GroupVersionKind().GroupKind().String() == rbacv1.ServiceAccountKind {
			accounts[o.GetName()] = append(accounts[o.GetName()], o.GetNamespace())
		}
	}
	var found []Problem
	for _, o := range result.Objects {
		for _, subject := range accountsOf(o) {
			namespaces := accounts[subject.Name]
			if result.Format == convert.RegistryV1 || len(namespaces) == 0 || slices.Contains(namespaces, subject.Namespace) {
				continue
			}
			found = append(found, Problem{Severity: Warning, Object: o.GetKind() + " " + o.GetName(), Rule: "subject",
				Message: fmt.Sprintf("it binds ServiceAccount %s of the namespace %s, and the bundle's own is in %s: it does not get these permissions", subject.Name, subject.Namespace, namespaces[0]),
				Remedy:  "correct the namespace of the subject; a kustomization with namespace, and .Release.Namespace in a chart, follow the install namespace"})
		}
	}
	return found
}

// accountsOf are the ServiceAccounts with a namespace that a binding is for.
func accountsOf(o *unstructured.Unstructured) []types.NamespacedName {
	if o.GroupVersionKind().Group != rbacv1.GroupName {
		return nil
	}
	var names []types.NamespacedName
	subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
	for _, subject := range subjects {
		fields, _ := subject.(map[string]any)
		namespace, _ := fields["namespace"].(string)
		name, _ := fields["name"].(string)
		if fields["kind"] == rbacv1.ServiceAccountKind && namespace != "" {
			names = append(names, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return names
}
