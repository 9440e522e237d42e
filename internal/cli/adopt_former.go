// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// former is a former owner of objects that are taken over: an object of the cluster, or a Helm release.
type former struct {
	Kind      string    `json:"kind"`
	Group     string    `json:"group,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Removal   string    `json:"letGo"` // how to remove it without the objects that it owned
	version   string    // of the API, where an owner reference says it
	uid       types.UID // the same
}

// String names it.
func (f former) String() string {
	if f.Namespace == "" {
		return f.Kind + " " + f.Name
	}
	return f.Kind + " " + f.Namespace + "/" + f.Name
}

// Kinds of former owners.
const (
	csvKind       = "ClusterServiceVersion"
	extensionKind = "ClusterExtension"
	releaseKind   = "Helm release"
)

// markers are the labels and annotations in which tools name the owner of an object.
var markers = []struct {
	kind, group             string // kind: empty, it stands under kindKey
	name, namespace, kindOf string
}{
	{kind: csvKind, group: "operators.coreos.com", name: "olm.owner", namespace: "olm.owner.namespace", kindOf: "olm.owner.kind"},
	{kind: extensionKind, group: "olm.operatorframework.io", name: "olm.operatorframework.io/owner-name", kindOf: "olm.operatorframework.io/owner-kind"},
	{kind: "BundleDeployment", group: "core.rukpak.io", name: "core.rukpak.io/owner-name", kindOf: "core.rukpak.io/owner-kind"},
	{kind: "HelmRelease", group: "helm.toolkit.fluxcd.io", name: "helm.toolkit.fluxcd.io/name", namespace: "helm.toolkit.fluxcd.io/namespace"},
	{kind: "Kustomization", group: "kustomize.toolkit.fluxcd.io", name: "kustomize.toolkit.fluxcd.io/name", namespace: "kustomize.toolkit.fluxcd.io/namespace"},
	{kind: releaseKind, name: "meta.helm.sh/release-name", namespace: "meta.helm.sh/release-namespace"},
	{kind: "Argo CD application", name: "argocd.argoproj.io/instance"},
}

// ownerGroups are the API groups of owners that set owner references on the objects that they install.
var ownerGroups = []string{"operators.coreos.com", "olm.operatorframework.io", "core.rukpak.io", "package-operator.run"}

// formersOf are the former owners of one object: by its owner references, labels and annotations.
func formersOf(object metav1.Object) []former {
	var found []former
	for _, reference := range object.GetOwnerReferences() {
		gv, _ := schema.ParseGroupVersion(reference.APIVersion)
		if !slices.Contains(ownerGroups, gv.Group) {
			continue
		}
		owner := former{Kind: reference.Kind, Group: gv.Group, Name: reference.Name, version: gv.Version, uid: reference.UID}
		if reference.Kind == csvKind || gv.Group == "operators.coreos.com" {
			owner.Namespace = object.GetNamespace()
		}
		found = append(found, owner)
	}
	for _, mark := range markers {
		name := markOf(object, mark.name)
		if name == "" {
			continue
		}
		found = append(found, former{Kind: cmp.Or(markOf(object, mark.kindOf), mark.kind), Group: mark.group, Name: name, Namespace: markOf(object, mark.namespace)})
	}
	return found
}

func markOf(object metav1.Object, key string) string {
	if key == "" {
		return ""
	}
	return cmp.Or(object.GetLabels()[key], object.GetAnnotations()[key])
}

// formerWords are how users name former owners, as KIND/NAME.
var formerWords = map[string]former{
	"csv":              {Kind: csvKind, Group: "operators.coreos.com"},
	"clusterextension": {Kind: extensionKind, Group: "olm.operatorframework.io"},
	"rukpak":           {Kind: "BundleDeployment", Group: "core.rukpak.io"},
	"helm":             {Kind: releaseKind},
}

func isFormer(text string) bool { return len(formerNamed(text, "")) == 1 }

// formerNamed is the former owner that the user named, if he did.
func formerNamed(text, namespace string) []former {
	word, name, _ := strings.Cut(text, "/")
	owner, found := formerWords[strings.ToLower(word)]
	if !found || name == "" || strings.Contains(name, "/") {
		return nil
	}
	owner.Name = name
	if owner.Kind == csvKind || owner.Kind == releaseKind {
		owner.Namespace = namespace
	}
	return []former{owner}
}

// formerOwners are those of all objects that are taken over, and those who are named, each once, sorted.
func formerOwners(objects []adoptedObject, namespace string, named ...former) []former {
	byName := map[string]former{}
	for _, owner := range named {
		byName[owner.String()] = owner
	}
	for _, o := range objects {
		if o.Action != takenOver {
			continue
		}
		for _, owner := range formersOf(o.live) {
			if owner.Kind == csvKind && owner.Namespace == "" {
				owner.Namespace = namespace
			}
			known, found := byName[owner.String()]
			if !found || known.uid == "" {
				byName[owner.String()] = owner
			}
		}
	}
	all := make([]former, 0, len(byName))
	for _, owner := range byName {
		owner.Removal = owner.removal()
		all = append(all, owner)
	}
	slices.SortFunc(all, func(a, b former) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// removable tells whether the command can remove the owner.
func (f former) removable() bool {
	switch f.Group {
	case "operators.coreos.com", "olm.operatorframework.io", "core.rukpak.io":
		return f.Kind == csvKind || f.Kind == extensionKind || f.Kind == "BundleDeployment"
	}
	return f.Kind == releaseKind
}

// removal says how to remove the owner without the objects that it owned.
func (f former) removal() string {
	name, in := shellWord(f.Name), ""
	if f.Namespace != "" {
		in = " -n " + shellWord(f.Namespace)
	}
	switch {
	case f.Kind == csvKind:
		return fmt.Sprintf("delete the Subscription that installed it, then: kubectl delete clusterserviceversion %s%s --cascade=orphan", name, in)
	case f.Kind == releaseKind:
		return fmt.Sprintf("kubectl delete secret%s -l owner=helm,name=%s", in, name)
	case f.Group == "helm.toolkit.fluxcd.io":
		return fmt.Sprintf("take it out of Git, with: flux suspend helmrelease %s%s; kubectl delete helmrelease %s%s", name, in, name, in)
	case f.Group == "kustomize.toolkit.fluxcd.io":
		return fmt.Sprintf("take it, or what is taken over, out of Git, with spec.prune: false; or flux suspend kustomization %s%s, then delete it", name, in)
	case f.Kind == "Argo CD application":
		return fmt.Sprintf("argocd app delete %s --cascade=false", name)
	case f.Group != "":
		return fmt.Sprintf("kubectl delete %s.%s %s%s --cascade=orphan", strings.ToLower(f.Kind), f.Group, name, in)
	}
	return ""
}
