// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/parallel"
)

// Kinds that workloads and operators make.
var (
	podKind         = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	serviceKind     = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	claimKind       = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}
	replicaSetKind  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
	deploymentKind  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	statefulSetKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	daemonSetKind   = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}
	jobKind         = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	cronJobKind     = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}
)

// makes are the kinds that objects of a kind own. Selected tells that the owner's selector selects them.
var makes = map[schema.GroupKind]struct {
	kinds    []schema.GroupVersionKind
	selected bool
}{
	deploymentKind.GroupKind():        {kinds: []schema.GroupVersionKind{replicaSetKind}, selected: true},
	replicaSetKind.GroupKind():        {kinds: []schema.GroupVersionKind{podKind}, selected: true},
	statefulSetKind.GroupKind():       {kinds: []schema.GroupVersionKind{podKind}, selected: true},
	daemonSetKind.GroupKind():         {kinds: []schema.GroupVersionKind{podKind}, selected: true},
	jobKind.GroupKind():               {kinds: []schema.GroupVersionKind{podKind}, selected: true},
	{Kind: "ReplicationController"}:   {kinds: []schema.GroupVersionKind{podKind}, selected: true},
	cronJobKind.GroupKind():           {kinds: []schema.GroupVersionKind{jobKind}},
	{Group: "", Kind: customResource}: {kinds: []schema.GroupVersionKind{deploymentKind, statefulSetKind, daemonSetKind, cronJobKind, jobKind, podKind, serviceKind, claimKind}},
}

// customResource stands for the kinds of operators.
const customResource = "*"

// makerOf is the key of an object's kind in makes.
func makerOf(kind schema.GroupKind) schema.GroupKind {
	if strings.Contains(kind.Group, ".") && !strings.HasSuffix(kind.Group, ".k8s.io") {
		return schema.GroupKind{Kind: customResource}
	}
	return kind
}

const (
	deepest     = 6    // generations of owned objects
	mostScanned = 5000 // objects of one kind and namespace among which owned ones are looked for
	fewOwners   = 4    // owners of which the selectors are asked for one by one
)

// kindInNamespace is a kind and a namespace in which owned objects are searched.
type kindInNamespace struct {
	kind      schema.GroupVersionKind
	namespace string
}

// descend finds what the objects own, a generation at a time.
func (r *treeReader) descend(ctx context.Context, nodes []*treeNode) {
	known := map[types.UID]*treeNode{}
	walkNodes(nodes, func(n *treeNode) { known[n.uid] = n })
	for range deepest {
		if nodes = r.generation(ctx, nodes, known); len(nodes) == 0 {
			return
		}
	}
}

// generation finds objects of the owners that are not known yet, and adds them to their owners.
func (r *treeReader) generation(ctx context.Context, owners []*treeNode, known map[types.UID]*treeNode) []*treeNode {
	owning := map[kindInNamespace][]*treeNode{}
	var scopes []kindInNamespace
	for _, owner := range owners {
		if owner.uid == "" {
			continue
		}
		namespace := cmp.Or(owner.Namespace, r.deployment.InstallNamespaceOrDefault())
		for _, kind := range makes[makerOf(owner.groupKind())].kinds {
			at := kindInNamespace{kind: kind, namespace: namespace}
			if owning[at] == nil {
				scopes = append(scopes, at)
			}
			owning[at] = append(owning[at], owner)
		}
	}
	found := parallel.Each(ctx, atOnce, scopes, func(ctx context.Context, at kindInNamespace) []ownership { return r.ownedBy(ctx, at, owning[at]) })
	var generation []*treeNode
	for _, b := range slices.Concat(found...) {
		if known[b.node.uid] == nil {
			known[b.node.uid] = b.node
			b.owner.Owned = append(b.owner.Owned, b.node)
			generation = append(generation, b.node)
		}
	}
	for _, owner := range owners {
		slices.SortFunc(owner.Owned, func(a, b *treeNode) int { return a.id().Compare(b.id()) })
	}
	return generation
}

// ownership is an object and what owns it.
type ownership struct{ owner, node *treeNode }

// ownedBy finds objects of one kind and namespace that the owners own.
func (r *treeReader) ownedBy(ctx context.Context, at kindInNamespace, owners []*treeNode) []ownership {
	mapping, err := r.mapper.RESTMapping(at.kind.GroupKind(), at.kind.Version)
	if err != nil {
		if !apimeta.IsNoMatchError(err) {
			r.omitted.add("what is owned of the kind %s: %v", at.kind.Kind, err)
		}
		return nil
	}
	byUID := map[types.UID]*treeNode{}
	for _, owner := range owners {
		byUID[owner.uid] = owner
	}
	var found []ownership
	for _, selector := range selectorsOf(owners) {
		l := listing{resource: mapping.Resource, namespace: at.namespace, selector: selector, whole: true, limit: mostScanned}
		more, err := r.each(ctx, l, func(one sighting) {
			if owner := ownerAmong(byUID, one); owner != nil && !retired(one.body) {
				n := &treeNode{Group: at.kind.Group, Version: at.kind.Version, Kind: at.kind.Kind, Namespace: one.GetNamespace(), Name: one.GetName()}
				r.see(ctx, n, one)
				found = append(found, ownership{owner: owner, node: n})
			}
		})
		if err != nil {
			r.unreadable("list", mapping.Resource, at.namespace, err)
			if apierrors.IsForbidden(err) {
				break
			}
		}
		if more {
			r.omitted.add("some %s in the namespace %q: owned objects were searched among the first %d", mapping.Resource.Resource, at.namespace, mostScanned)
		}
	}
	return found
}

// selectorsOf are the selectors to list owned objects: that of each owner if they are few, else one for all objects.
func selectorsOf(owners []*treeNode) []string {
	var selectors []string
	for _, owner := range owners {
		if !makes[makerOf(owner.groupKind())].selected || owner.selector == "" || len(owners) > fewOwners {
			return []string{""}
		}
		selectors = append(selectors, owner.selector)
	}
	slices.Sort(selectors)
	return slices.Compact(selectors)
}

// ownerAmong is which of the owners an object names; the controlling one first.
func ownerAmong(owners map[types.UID]*treeNode, one sighting) *treeNode {
	var found *treeNode
	for _, ref := range one.GetOwnerReferences() {
		owner := owners[ref.UID]
		if owner == nil {
			continue
		}
		if ref.Controller != nil && *ref.Controller {
			return owner
		}
		found = cmp.Or(found, owner)
	}
	return found
}

// retired tells that an object is the ReplicaSet of an earlier template, kept for its history.
func retired(object *unstructured.Unstructured) bool {
	if object.GroupVersionKind() != replicaSetKind {
		return false
	}
	wanted, found, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	present, _, _ := unstructured.NestedInt64(object.Object, "status", "replicas")
	return found && wanted == 0 && present == 0
}
