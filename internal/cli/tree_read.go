// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
)

// tree is a deployment with its objects and what they own. Its JSON form is what tree -o json prints.
type tree struct {
	Namespace string                 `json:"namespace"`
	Name      string                 `json:"name"`
	Ready     metav1.ConditionStatus `json:"ready"`
	Message   string                 `json:"message,omitempty"`
	Created   metav1.Time            `json:"created"`
	Revision  string                 `json:"revision,omitempty"`
	Remote    string                 `json:"kubeConfigSecret,omitempty"` // objects are on the cluster of this Secret
	Objects   []*treeNode            `json:"objects"`
	Omitted   []string               `json:"omitted,omitempty"`

	state string
	color color
}

// treeNode is an object.
type treeNode struct {
	Group     string       `json:"group"`
	Version   string       `json:"version,omitempty"`
	Kind      string       `json:"kind"`
	Namespace string       `json:"namespace,omitempty"`
	Name      string       `json:"name"`
	Health    string       `json:"health"`
	Reason    string       `json:"reason,omitempty"`
	Created   *metav1.Time `json:"created,omitempty"`
	Owned     []*treeNode  `json:"owned,omitempty"`

	uid        types.UID
	selector   string         // of the Pods of a workload
	containers []logContainer // of a Pod
}

// healthyWord is the state of healthy objects; other states are those of the package health.
const healthyWord = "Healthy"

func (n *treeNode) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: n.Group, Kind: n.Kind}
}

func (n *treeNode) id() inventory.ID {
	return inventory.ID{Group: n.Group, Kind: n.Kind, Namespace: n.Namespace, Name: n.Name}
}

// walk visits all objects, owners before what they own.
func (t tree) walk(visit func(*treeNode)) { walkNodes(t.Objects, visit) }

func walkNodes(nodes []*treeNode, visit func(*treeNode)) {
	for _, n := range nodes {
		visit(n)
		walkNodes(n.Owned, visit)
	}
}

const (
	// atOnce is how many requests are under way.
	atOnce = 8
	// fewObjects of one kind and namespace are read one by one; more are listed by their labels.
	fewObjects = 3
	// mostLookups bounds the objects that are read one by one because they lack the deployment's labels.
	mostLookups = 1000
)

// treeReader reads the objects of one deployment.
type treeReader struct {
	*explorer
	deployment *v1alpha1.BundleDeployment
	rules      health.Rules
	lookups    atomic.Int64
}

// readTree reads a deployment and its objects, as far as the user may.
func (x *explorer) readTree(ctx context.Context, t target) (tree, error) {
	d, err := x.deployment(ctx, t)
	if err != nil {
		return tree{}, err
	}
	return x.treeOf(ctx, d, func(schema.GroupKind) bool { return true })
}

// treeOf is readTree of a deployment that has been read, with the wanted kinds of its inventory only.
func (x *explorer) treeOf(ctx context.Context, d *v1alpha1.BundleDeployment, wanted func(schema.GroupKind) bool) (tree, error) {
	x.omitted.clear()
	listed, err := inventory.Decode(d.Status.Inventory)
	if err != nil {
		return tree{}, fmt.Errorf("the status of %s %s cannot be read: %w", v1alpha1.BundleDeploymentKind, d.Name, err)
	}
	rules, err := rulesFor(d)
	if err != nil {
		return tree{}, err
	}
	found := newTree(d)
	for _, entry := range listed.Entries {
		if wanted(entry.GroupKind()) {
			found.Objects = append(found.Objects, &treeNode{Group: entry.Group, Version: entry.Version, Kind: entry.Kind,
				Namespace: entry.Namespace, Name: entry.Name, Health: string(health.Unknown)})
		}
	}
	if found.Remote != "" {
		x.omitted.add("the state of its %s: they are on the cluster of the kubeconfig in the Secret %s", plural(len(found.Objects), "object"), found.Remote)
	} else {
		r := &treeReader{explorer: x, deployment: d, rules: rules}
		r.look(ctx, found.Objects)
		r.descend(ctx, found.Objects)
	}
	found.Omitted = x.omitted.list()
	return found, context.Cause(ctx)
}

func newTree(d *v1alpha1.BundleDeployment) tree {
	s := summarize(d)
	found := tree{Namespace: d.Namespace, Name: d.Name, Ready: metav1.ConditionUnknown, Created: d.CreationTimestamp,
		Revision: d.Status.LastAppliedRevision, Objects: []*treeNode{}, state: stateOf(s), color: s.color()}
	if ready := apimeta.FindStatusCondition(d.Status.Conditions, meta.ReadyCondition); ready != nil && !s.unseen {
		found.Ready = ready.Status
	}
	if found.Ready != metav1.ConditionTrue {
		found.Message = s.text()
	}
	if d.Spec.KubeConfig != nil {
		found.Remote = d.Spec.KubeConfig.SecretRef.Name
	}
	return found
}

// place is where objects of one kind are.
type place struct {
	kind      schema.GroupKind
	version   string
	namespace string
}

// look reads the objects of the inventory, a kind and namespace at a time.
func (r *treeReader) look(ctx context.Context, nodes []*treeNode) {
	at := map[place][]*treeNode{}
	var places []place
	for _, n := range nodes {
		p := place{kind: n.groupKind(), version: n.Version, namespace: n.Namespace}
		if at[p] == nil {
			places = append(places, p)
		}
		at[p] = append(at[p], n)
	}
	parallel.Each(ctx, atOnce, places, func(ctx context.Context, p place) struct{} {
		r.lookAt(ctx, p, at[p])
		return struct{}{}
	})
}

func (r *treeReader) lookAt(ctx context.Context, p place, nodes []*treeNode) {
	mapping, err := r.mapper.RESTMapping(p.kind, p.version)
	if apimeta.IsNoMatchError(err) {
		mapping, err = r.mapper.RESTMapping(p.kind)
	}
	if err != nil {
		for _, n := range nodes {
			n.Health, n.Reason = string(health.Missing), "the cluster does not serve its kind"
			if !apimeta.IsNoMatchError(err) {
				n.Health, n.Reason = string(health.Unknown), "its kind cannot be looked up: "+err.Error()
			}
		}
		return
	}
	whole := r.rules.Needs(mapping.GroupVersionKind)
	if len(nodes) > fewObjects {
		nodes = r.lookAmong(ctx, mapping.Resource, p.namespace, nodes, whole)
	}
	r.lookUp(ctx, mapping.Resource, nodes, whole)
}

// lookAmong lists the objects with the deployment's labels, and returns the nodes that were not among them.
func (r *treeReader) lookAmong(ctx context.Context, resource schema.GroupVersionResource, namespace string, nodes []*treeNode, whole bool) []*treeNode {
	wanted := make(map[string]*treeNode, len(nodes))
	for _, n := range nodes {
		wanted[n.Name] = n
	}
	owner := inventory.Owner{Namespace: r.deployment.Namespace, Name: r.deployment.Name}
	l := listing{resource: resource, namespace: namespace, whole: whole, limit: inventory.MaxEntries,
		selector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: owner.Labels()})}
	_, err := r.each(ctx, l, func(found sighting) {
		if n := wanted[found.GetName()]; n != nil {
			r.see(ctx, n, found)
			delete(wanted, n.Name)
		}
	})
	if err != nil {
		r.unreadable("list", resource, namespace, err)
	}
	var left []*treeNode
	for _, n := range nodes {
		if wanted[n.Name] != nil {
			left = append(left, n)
		}
	}
	return left
}

// lookUp reads objects one by one.
func (r *treeReader) lookUp(ctx context.Context, resource schema.GroupVersionResource, nodes []*treeNode, whole bool) {
	parallel.Each(ctx, atOnce, nodes, func(ctx context.Context, n *treeNode) struct{} {
		if r.lookups.Add(1) > mostLookups {
			n.Reason = "not read"
			r.omitted.add("the state of further objects: at most %d without the deployment's labels are read", mostLookups)
			return struct{}{}
		}
		found, err := r.one(ctx, resource, n.Namespace, n.Name, whole)
		switch {
		case apierrors.IsNotFound(err):
			n.Health, n.Reason = string(health.Missing), "it does not exist"
		case err != nil:
			n.Reason = "it could not be read"
			if apierrors.IsForbidden(err) {
				n.Reason = "you may not get it"
			}
			r.unreadable("get", resource, n.Namespace, err)
		default:
			r.see(ctx, n, found)
		}
		return struct{}{}
	})
}

// see records the state of an object.
func (r *treeReader) see(ctx context.Context, n *treeNode, found sighting) {
	created := found.GetCreationTimestamp()
	n.uid, n.Created, n.Health, n.Reason = found.GetUID(), &created, healthyWord, ""
	if found.body == nil {
		if found.GetDeletionTimestamp() != nil {
			n.Health, n.Reason = string(health.Terminating), "it is being deleted"
		}
		return
	}
	n.selector, _ = health.Selector(found.body)
	if n.groupKind() == podKind.GroupKind() {
		n.containers = logContainers(found.body)
	}
	state, message, err := r.rules.Look(ctx, found.body)
	switch {
	case err != nil:
		n.Health, n.Reason = string(health.Unknown), err.Error()
	case state != "":
		n.Health, n.Reason = string(state), message
	}
}
