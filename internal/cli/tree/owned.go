// SPDX-License-Identifier: Apache-2.0

package tree

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
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Kinds that workloads and operators make.
var (
	PodKind         = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	serviceKind     = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	claimKind       = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}
	ReplicaSetKind  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
	DeploymentKind  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	StatefulSetKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	DaemonSetKind   = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}
	JobKind         = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	cronJobKind     = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}
)

// madeKinds are the kinds that a controller makes for an object.
type madeKinds struct {
	Kinds    []schema.GroupVersionKind
	selected bool // the owner's selector selects them
}

// Makes are the kinds that objects of a kind own.
var Makes = map[schema.GroupKind]madeKinds{
	DeploymentKind.GroupKind():        {Kinds: []schema.GroupVersionKind{ReplicaSetKind}, selected: true},
	ReplicaSetKind.GroupKind():        {Kinds: []schema.GroupVersionKind{PodKind}, selected: true},
	StatefulSetKind.GroupKind():       {Kinds: []schema.GroupVersionKind{PodKind}, selected: true},
	DaemonSetKind.GroupKind():         {Kinds: []schema.GroupVersionKind{PodKind}, selected: true},
	JobKind.GroupKind():               {Kinds: []schema.GroupVersionKind{PodKind}, selected: true},
	{Kind: "ReplicationController"}:   {Kinds: []schema.GroupVersionKind{PodKind}, selected: true},
	cronJobKind.GroupKind():           {Kinds: []schema.GroupVersionKind{JobKind}},
	{Group: "", Kind: customResource}: {Kinds: []schema.GroupVersionKind{DeploymentKind, StatefulSetKind, DaemonSetKind, cronJobKind, JobKind, PodKind, serviceKind, claimKind}},
}

// customResource stands for the kinds of operators.
const customResource = "*"

// MakerOf is the key of an object's kind in makes.
func MakerOf(kind schema.GroupKind) schema.GroupKind {
	if strings.Contains(kind.Group, ".") && !strings.HasSuffix(kind.Group, ".k8s.io") {
		return schema.GroupKind{Kind: customResource}
	}
	return kind
}

// Bounds of what is read about owned objects.
const (
	Deepest     = 6    // generations of owned objects
	MostScanned = 5000 // objects of one kind and namespace among which owned ones are looked for
	fewOwners   = 4    // owners of which the selectors are asked for one by one
)

// KindInNamespace is a kind and a namespace in which owned objects are searched.
type KindInNamespace struct {
	Kind      schema.GroupVersionKind
	Namespace string
}

// descend finds what the objects own, a generation at a time.
func (r *treeReader) descend(ctx context.Context, nodes []*Node) {
	known := map[types.UID]*Node{}
	walkNodes(nodes, func(n *Node) { known[n.UID] = n })
	for range Deepest {
		if nodes = r.generation(ctx, nodes, known); len(nodes) == 0 {
			return
		}
	}
}

// generation finds objects of the owners that are not known yet, and adds them to their owners.
func (r *treeReader) generation(ctx context.Context, owners []*Node, known map[types.UID]*Node) []*Node {
	owning := map[KindInNamespace][]*Node{}
	var scopes []KindInNamespace
	for _, owner := range owners {
		if owner.UID == "" {
			continue
		}
		namespace := cmp.Or(owner.Namespace, effective.InstallNamespace(r.deployment))
		for _, kind := range Makes[MakerOf(owner.groupKind())].Kinds {
			at := KindInNamespace{Kind: kind, Namespace: namespace}
			if owning[at] == nil {
				scopes = append(scopes, at)
			}
			owning[at] = append(owning[at], owner)
		}
	}
	found := parallel.Each(ctx, kit.AtOnce, scopes, func(ctx context.Context, at KindInNamespace) []ownership { return r.ownedBy(ctx, at, owning[at]) })
	var generation []*Node
	for _, b := range slices.Concat(found...) {
		if known[b.node.UID] == nil {
			known[b.node.UID] = b.node
			b.owner.Owned = append(b.owner.Owned, b.node)
			generation = append(generation, b.node)
		}
	}
	for _, owner := range owners {
		slices.SortFunc(owner.Owned, func(a, b *Node) int { return a.id().Compare(b.id()) })
	}
	return generation
}

// ownership is an object and what owns it.
type ownership struct{ owner, node *Node }

// ownedBy finds objects of one kind and namespace that the owners own.
func (r *treeReader) ownedBy(ctx context.Context, at KindInNamespace, owners []*Node) []ownership {
	mapping, err := r.Mapper.RESTMapping(at.Kind.GroupKind(), at.Kind.Version)
	if err != nil {
		if !apimeta.IsNoMatchError(err) {
			r.Omitted.Add("what is owned of the kind %s: %v", at.Kind.Kind, err)
		}
		return nil
	}
	byUID := map[types.UID]*Node{}
	for _, owner := range owners {
		byUID[owner.UID] = owner
	}
	var found []ownership
	for _, selector := range selectorsOf(owners) {
		l := kit.Listing{Resource: mapping.Resource, Namespace: at.Namespace, Selector: selector, Whole: true, Limit: MostScanned}
		more, err := r.Each(ctx, l, func(one kit.Sighting) {
			if owner := ownerAmong(byUID, one); owner != nil && !retired(one.Body) {
				n := &Node{Group: at.Kind.Group, Version: at.Kind.Version, Kind: at.Kind.Kind, Namespace: one.GetNamespace(), Name: one.GetName()}
				r.see(ctx, n, one)
				found = append(found, ownership{owner: owner, node: n})
			}
		})
		if err != nil {
			r.Unreadable("list", mapping.Resource, at.Namespace, err)
			if apierrors.IsForbidden(err) {
				break
			}
		}
		if more {
			r.Omitted.Add("some %s in the namespace %q: owned objects were searched among the first %d", mapping.Resource.Resource, at.Namespace, MostScanned)
		}
	}
	return found
}

// selectorsOf are the selectors to list owned objects: that of each owner if they are few, else one for all objects.
func selectorsOf(owners []*Node) []string {
	var selectors []string
	for _, owner := range owners {
		if !Makes[MakerOf(owner.groupKind())].selected || owner.selector == "" || len(owners) > fewOwners {
			return []string{""}
		}
		selectors = append(selectors, owner.selector)
	}
	slices.Sort(selectors)
	return slices.Compact(selectors)
}

// ownerAmong is which of the owners an object names; the controlling one first.
func ownerAmong(owners map[types.UID]*Node, one kit.Sighting) *Node {
	var found *Node
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
	if object.GroupVersionKind() != ReplicaSetKind {
		return false
	}
	wanted, found, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	present, _, _ := unstructured.NestedInt64(object.Object, "status", "replicas")
	return found && wanted == 0 && present == 0
}
