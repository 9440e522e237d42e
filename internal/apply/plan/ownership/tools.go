// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// HelmRelease is the tool of objects that Helm installed.
const HelmRelease = "Helm release"

// marks are the labels and annotations of other tools on objects that they own: those with the
// name and, if set, the namespace of the owning object, and further signs of ownership.
var marks = []struct {
	tool, name, namespace string
	further               []string
}{
	{tool: "Flux Kustomization", name: "kustomize.toolkit.fluxcd.io/name", namespace: "kustomize.toolkit.fluxcd.io/namespace"},
	{tool: "Flux HelmRelease", name: "helm.toolkit.fluxcd.io/name", namespace: "helm.toolkit.fluxcd.io/namespace"},
	{tool: "Argo CD application", name: "argocd.argoproj.io/instance"},
	{tool: "Argo CD application", name: "argocd.argoproj.io/tracking-id", further: []string{"argocd.argoproj.io/installation-id"}},
	{tool: HelmRelease, name: "meta.helm.sh/release-name", namespace: "meta.helm.sh/release-namespace"},
	{tool: "OLM", name: "olm.operatorframework.io/owner-name", further: []string{"olm.operatorframework.io/owner-kind"}},
	{tool: "OLM", name: "olm.owner", namespace: "olm.owner.namespace", further: []string{"olm.owner.kind", "olm.managed"}},
	{tool: "RukPak", name: "core.rukpak.io/owner-name", further: []string{"core.rukpak.io/owner-kind"}},
}

// toolGroups are the API groups of tools that own objects by owner references, with
// or without being their controller: such an object is deleted with its owner.
var toolGroups = map[string]string{
	"operators.coreos.com":     "OLM",
	"olm.operatorframework.io": "OLM",
	"core.rukpak.io":           "RukPak",
	"package-operator.run":     "Package Operator",
}

// IsToolFinalizer tells whether a finalizer is that of a tool that owns by references.
func IsToolFinalizer(finalizer string) bool {
	group, _, found := strings.Cut(finalizer, "/")
	return found && toolGroups[group] != ""
}

// formerManagers are the field managers that may have controlled an object before
// it is adopted: they write whole manifests. Managers that write single fields are not among
// them: controllers and autoscalers, and a user's label, annotation, scale or restart.
var formerManagers = map[string]bool{
	inventory.OrphanManager: true,
	"before-first-apply":    true, // what stands for all fields of an object that lost its managers

	"kubectl": true, "kubectl-client-side-apply": true, "kubectl-create": true, "kubectl-replace": true,
	"kubectl-edit": true, "kubectl-patch": true, "kubectl-set": true, "kubectl-run": true, "kubectl-expose": true,

	"helm": true, "helm-controller": true, "kustomize-controller": true, "flux": true,
	"argocd-controller": true, "argocd-application-controller": true, "argocd-server": true,
	"olm": true, "catalog": true, "operator-controller": true, "olm.operatorframework.io": true,
	"package-operator": true,
}

// IsFormer tells whether an adopting deployment takes over the fields of a manager.
func IsFormer(manager string) bool { return formerManagers[manager] }

// toolOf names the tool that owns an object by its labels and annotations, and the owning object.
func toolOf(object metav1.Object) string {
	for _, mark := range marks {
		name := markOf(object, mark.name)
		if name == "" {
			continue
		}
		if namespace := markOf(object, mark.namespace); namespace != "" {
			name = namespace + "/" + name
		}
		return mark.tool + " " + name
	}
	for _, reference := range object.GetOwnerReferences() {
		if tool := toolGroups[groupOf(reference)]; tool != "" {
			return tool + " " + reference.Kind + " " + reference.Name
		}
	}
	return ""
}

func markOf(object metav1.Object, key string) string {
	if value, found := object.GetLabels()[key]; found {
		return value
	}
	return object.GetAnnotations()[key]
}

func groupOf(reference metav1.OwnerReference) string {
	return schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).Group
}

// Unmark is the metadata of a merge patch that removes an object's owners: the labels and
// annotations of former owners, and the references to owners that control the object or that
// it would be deleted with.
func Unmark(object metav1.Object) map[string]any {
	labels, annotations := map[string]any{}, map[string]any{inventory.AnnotationOrphaned: nil}
	drop := func(key string) {
		if _, found := object.GetLabels()[key]; found {
			labels[key] = nil
		}
		if _, found := object.GetAnnotations()[key]; found {
			annotations[key] = nil
		}
	}
	for _, mark := range marks {
		for _, key := range append([]string{mark.name, mark.namespace}, mark.further...) {
			drop(key)
		}
	}
	for key := range (inventory.Owner{}).Labels() {
		drop(key)
	}
	if object.GetLabels()["app.kubernetes.io/managed-by"] == "Helm" {
		drop("app.kubernetes.io/managed-by")
	}
	metadata := map[string]any{"annotations": annotations}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	references := object.GetOwnerReferences()
	kept := slices.DeleteFunc(slices.Clone(references), func(reference metav1.OwnerReference) bool {
		return reference.Controller != nil && *reference.Controller || toolGroups[groupOf(reference)] != ""
	})
	if len(kept) < len(references) {
		metadata["ownerReferences"] = kept
	}
	return metadata
}
