// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/view"
)

// Former is a former owner of objects that are adopted: an object of the cluster, or a Helm release.
type Former struct {
	Kind      string    `json:"kind"`
	Group     string    `json:"group,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Removal   string    `json:"removal"` // how to remove it without the objects that it owned
	version   string    // of the API, where an owner reference says it
	uid       types.UID // the same
}

// String names it.
func (f Former) String() string {
	if f.Namespace == "" {
		return f.Kind + " " + f.Name
	}
	return f.Kind + " " + f.Namespace + "/" + f.Name
}

// Kinds of former owners.
const (
	CSVKind       = "ClusterServiceVersion"
	extensionKind = "ClusterExtension"
	ReleaseKind   = "Helm release"

	applicationKind = "Argo CD application"
)

// Markers are the labels and annotations in which tools name the owner of an object.
var Markers = []struct {
	kind, group             string // kind: empty, it stands under kindKey
	Name, Namespace, kindOf string
	tracking                bool // the value is a tracking ID of Argo CD
}{
	{kind: CSVKind, group: "operators.coreos.com", Name: "olm.owner", Namespace: "olm.owner.namespace", kindOf: "olm.owner.kind"},
	{kind: extensionKind, group: "olm.operatorframework.io", Name: "olm.operatorframework.io/owner-name", kindOf: "olm.operatorframework.io/owner-kind"},
	{kind: "BundleDeployment", group: "core.rukpak.io", Name: "core.rukpak.io/owner-name", kindOf: "core.rukpak.io/owner-kind"},
	{kind: "HelmRelease", group: "helm.toolkit.fluxcd.io", Name: "helm.toolkit.fluxcd.io/name", Namespace: "helm.toolkit.fluxcd.io/namespace"},
	{kind: "Kustomization", group: "kustomize.toolkit.fluxcd.io", Name: "kustomize.toolkit.fluxcd.io/name", Namespace: "kustomize.toolkit.fluxcd.io/namespace"},
	{kind: ReleaseKind, Name: "meta.helm.sh/release-name", Namespace: "meta.helm.sh/release-namespace"},
	{kind: applicationKind, Name: "argocd.argoproj.io/instance"},
	{kind: applicationKind, Name: "argocd.argoproj.io/tracking-id", tracking: true},
}

// ownerGroups are the API groups of owners that set owner references on the objects that they install.
var ownerGroups = []string{"operators.coreos.com", "olm.operatorframework.io", "core.rukpak.io", "package-operator.run"}

// FormersOf are the former owners of one object: by its owner references, labels and annotations.
func FormersOf(object metav1.Object) []Former {
	var found []Former
	for _, reference := range object.GetOwnerReferences() {
		gv, _ := schema.ParseGroupVersion(reference.APIVersion)
		if !slices.Contains(ownerGroups, gv.Group) {
			continue
		}
		owner := Former{Kind: reference.Kind, Group: gv.Group, Name: reference.Name, version: gv.Version, uid: reference.UID}
		if reference.Kind == CSVKind || gv.Group == "operators.coreos.com" {
			owner.Namespace = object.GetNamespace()
		}
		found = append(found, owner)
	}
	for _, mark := range Markers {
		name := markOf(object, mark.Name)
		if name == "" {
			continue
		}
		namespace := markOf(object, mark.Namespace)
		if mark.tracking {
			namespace, name = applicationOf(name)
		}
		found = append(found, Former{Kind: cmp.Or(markOf(object, mark.kindOf), mark.kind), Group: mark.group, Name: name, Namespace: namespace})
	}
	return found
}

// applicationOf is the application in a tracking ID, APP:GROUP/KIND:NAMESPACE/NAME. An application outside of the namespace of
// Argo CD is NAMESPACE_APP there.
func applicationOf(tracking string) (namespace, name string) {
	application, _, _ := strings.Cut(tracking, ":")
	if namespace, name, found := strings.Cut(application, "_"); found {
		return namespace, name
	}
	return "", application
}

func markOf(object metav1.Object, key string) string {
	if key == "" {
		return ""
	}
	return cmp.Or(object.GetLabels()[key], object.GetAnnotations()[key])
}

// formerWords are how users name former owners, as KIND/NAME.
var formerWords = map[string]Former{
	"csv":              {Kind: CSVKind, Group: "operators.coreos.com"},
	"clusterextension": {Kind: extensionKind, Group: "olm.operatorframework.io"},
	"rukpak":           {Kind: "BundleDeployment", Group: "core.rukpak.io"},
	"helm":             {Kind: ReleaseKind},
}

// IsFormer tells whether a text names one owner as KIND/NAME.
func IsFormer(text string) bool { return len(FormerNamed(text, "")) == 1 }

// FormerNamed is the former owner that the user named, if any.
func FormerNamed(text, namespace string) []Former {
	word, name, _ := strings.Cut(text, "/")
	owner, found := formerWords[strings.ToLower(word)]
	if !found || name == "" || strings.Contains(name, "/") {
		return nil
	}
	owner.Name = name
	if owner.Kind == CSVKind || owner.Kind == ReleaseKind {
		owner.Namespace = namespace
	}
	return []Former{owner}
}

// FormerOwners are those of all objects that are adopted, and those that are named, each once, sorted.
func FormerOwners(objects []AdoptedObject, namespace string, named ...Former) []Former {
	byName := map[string]Former{}
	for _, owner := range named {
		byName[owner.String()] = owner
	}
	for _, o := range objects {
		if o.Action != Adopted {
			continue
		}
		for _, owner := range FormersOf(o.Live) {
			if owner.Kind == CSVKind && owner.Namespace == "" {
				owner.Namespace = namespace
			}
			known, found := byName[owner.String()]
			if !found || known.uid == "" {
				byName[owner.String()] = owner
			}
		}
	}
	all := make([]Former, 0, len(byName))
	for _, owner := range byName {
		owner.Removal = owner.RemovalText()
		all = append(all, owner)
	}
	slices.SortFunc(all, func(a, b Former) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// Removable tells whether the command can remove the owner.
func (f Former) Removable() bool {
	switch f.Group {
	case "operators.coreos.com", "olm.operatorframework.io", "core.rukpak.io":
		return f.Kind == CSVKind || f.Kind == extensionKind || f.Kind == "BundleDeployment"
	}
	return f.Kind == ReleaseKind
}

// RemovalText says how to remove the owner without the objects that it owned.
func (f Former) RemovalText() string {
	name, in := view.ShellWord(f.Name), ""
	if f.Namespace != "" {
		in = " -n " + view.ShellWord(f.Namespace)
	}
	switch {
	case f.Kind == CSVKind:
		return fmt.Sprintf("delete the Subscription that installed it, then: kubectl delete clusterserviceversion %s%s --cascade=orphan", name, in)
	case f.Kind == ReleaseKind:
		return fmt.Sprintf("kubectl delete secret%s -l owner=helm,name=%s", in, name)
	case f.Group == "helm.toolkit.fluxcd.io":
		return fmt.Sprintf("remove it from Git, then: flux suspend helmrelease %s%s; kubectl delete helmrelease %s%s", name, in, name, in)
	case f.Group == "kustomize.toolkit.fluxcd.io":
		return fmt.Sprintf("set spec.prune: false, then remove it, or the adopted objects, from Git; or flux suspend kustomization %s%s, then delete it", name, in)
	case f.Kind == applicationKind && f.Namespace != "":
		return fmt.Sprintf("argocd app delete %s --cascade=false", view.ShellWord(f.Namespace+"/"+f.Name))
	case f.Kind == applicationKind:
		return fmt.Sprintf("argocd app delete %s --cascade=false", name)
	case f.Group != "":
		return fmt.Sprintf("kubectl delete %s.%s %s%s --cascade=orphan", strings.ToLower(f.Kind), f.Group, name, in)
	}
	return ""
}
