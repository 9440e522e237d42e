// SPDX-License-Identifier: Apache-2.0

package tree

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
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// Tree is a deployment with its objects and what they own. Its JSON form is what tree -o json prints.
type Tree struct {
	Namespace string                 `json:"namespace"`
	Name      string                 `json:"name"`
	Ready     metav1.ConditionStatus `json:"ready"`
	Message   string                 `json:"message,omitempty"`
	Created   metav1.Time            `json:"created"`
	Revision  string                 `json:"revision,omitempty"`
	Remote    string                 `json:"kubeConfigSecret,omitempty"` // objects are on the cluster of this Secret
	Profile   string                 `json:"clusterProfile,omitempty"`   // objects are on the cluster of this ClusterProfile
	holder    string                 // the Secret or ClusterProfile of the cluster with the objects
	Objects   []*Node                `json:"objects"`
	Omitted   []string               `json:"omitted,omitempty"`

	State string `json:"-"`
	color printer.Color
}

// Node is an object.
type Node struct {
	Group     string       `json:"group"`
	Version   string       `json:"version,omitempty"`
	Kind      string       `json:"kind"`
	Namespace string       `json:"namespace,omitempty"`
	Name      string       `json:"name"`
	Health    string       `json:"health"`
	Reason    string       `json:"reason,omitempty"`
	Created   *metav1.Time `json:"created,omitempty"`
	Owned     []*Node      `json:"owned,omitempty"`

	UID        types.UID      `json:"-"`
	selector   string         // of the Pods of a workload
	Containers []LogContainer `json:"-"` // of a Pod
}

// HealthyWord is the state of healthy objects; other states are those of the package health.
const HealthyWord = "Healthy"

func (n *Node) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: n.Group, Kind: n.Kind}
}

func (n *Node) id() inventory.ID {
	return inventory.ID{Group: n.Group, Kind: n.Kind, Namespace: n.Namespace, Name: n.Name}
}

// Walk visits all objects, owners before what they own.
func (t Tree) Walk(visit func(*Node)) { walkNodes(t.Objects, visit) }

func walkNodes(nodes []*Node, visit func(*Node)) {
	for _, n := range nodes {
		visit(n)
		walkNodes(n.Owned, visit)
	}
}

const (
	// fewObjects of one kind and namespace are read one by one; more are listed by their labels.
	fewObjects = 3
	// mostLookups bounds the objects that are read one by one because they lack the deployment's labels.
	mostLookups = 1000
)

// treeReader reads the objects of one deployment.
type treeReader struct {
	*kit.Explorer
	deployment *v1alpha1.BundleDeployment
	rules      health.Rules
	lookups    atomic.Int64
}

// readTree reads a deployment and its objects, as far as the user may.
func readTree(ctx context.Context, x *kit.Explorer, t kit.Target) (Tree, error) {
	d, err := x.Deployment(ctx, t)
	if err != nil {
		return Tree{}, err
	}
	return Of(ctx, x, d, func(schema.GroupKind) bool { return true })
}

// Of is readTree of a deployment that has been read, with the wanted kinds of its inventory only.
func Of(ctx context.Context, x *kit.Explorer, d *v1alpha1.BundleDeployment, wanted func(schema.GroupKind) bool) (Tree, error) {
	x.Omitted.Clear()
	listed, err := inventory.Decode(d.Status.Inventory)
	if err != nil {
		return Tree{}, fmt.Errorf("the status of %s %s cannot be read: %w", v1alpha1.BundleDeploymentKind, d.Name, err)
	}
	rules, err := rulesFor(d)
	if err != nil {
		return Tree{}, err
	}
	found := NewTree(d)
	for _, entry := range listed.Entries {
		if wanted(entry.GroupKind()) {
			found.Objects = append(found.Objects, &Node{Group: entry.Group, Version: entry.Version, Kind: entry.Kind,
				Namespace: entry.Namespace, Name: entry.Name, Health: string(health.Unknown)})
		}
	}
	if found.holder != "" {
		x.Omitted.Add("the state of its %s: they are on the cluster of the %s", view.Plural(len(found.Objects), "object"), found.holder)
	} else {
		r := &treeReader{Explorer: x, deployment: d, rules: rules}
		r.look(ctx, found.Objects)
		r.descend(ctx, found.Objects)
	}
	found.Omitted = x.Omitted.List()
	return found, context.Cause(ctx)
}

// NewTree is the tree of a deployment, still without objects.
func NewTree(d *v1alpha1.BundleDeployment) Tree {
	s := view.Summarize(d)
	found := Tree{Namespace: d.Namespace, Name: d.Name, Ready: metav1.ConditionUnknown, Created: d.CreationTimestamp,
		Revision: d.Status.Applied.Revision, Objects: []*Node{}, State: view.StateOf(s), color: printer.SummaryColor(s)}
	if ready := apimeta.FindStatusCondition(d.Status.Conditions, meta.ReadyCondition); ready != nil && !s.Unseen {
		found.Ready = ready.Status
	}
	if found.Ready != metav1.ConditionTrue {
		found.Message = s.Text()
	}
	if effective.IsRemote(d.Spec.Target.ClusterReference) {
		found.Remote = d.Spec.Target.ClusterReference.KubeConfig.SecretRef.Name
		if profile := d.Spec.Target.ClusterReference.ClusterProfileRef; profile != nil {
			found.Profile = profile.Name
		}
		found.holder = spec.KubeConfigHolder(effective.RemoteCluster(d.Spec.Target.ClusterReference))
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
func (r *treeReader) look(ctx context.Context, nodes []*Node) {
	at := map[place][]*Node{}
	var places []place
	for _, n := range nodes {
		p := place{kind: n.groupKind(), version: n.Version, namespace: n.Namespace}
		if at[p] == nil {
			places = append(places, p)
		}
		at[p] = append(at[p], n)
	}
	parallel.Each(ctx, kit.AtOnce, places, func(ctx context.Context, p place) struct{} {
		r.lookAt(ctx, p, at[p])
		return struct{}{}
	})
}

func (r *treeReader) lookAt(ctx context.Context, p place, nodes []*Node) {
	mapping, err := r.Mapper.RESTMapping(p.kind, p.version)
	if apimeta.IsNoMatchError(err) {
		mapping, err = r.Mapper.RESTMapping(p.kind)
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
func (r *treeReader) lookAmong(ctx context.Context, resource schema.GroupVersionResource, namespace string, nodes []*Node, whole bool) []*Node {
	wanted := make(map[string]*Node, len(nodes))
	for _, n := range nodes {
		wanted[n.Name] = n
	}
	owner := inventory.Owner{Namespace: r.deployment.Namespace, Name: r.deployment.Name}
	l := kit.Listing{Resource: resource, Namespace: namespace, Whole: whole, Limit: inventory.MaxEntries,
		Selector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: owner.Labels()})}
	_, err := r.Each(ctx, l, func(found kit.Sighting) {
		if n := wanted[found.GetName()]; n != nil {
			r.see(ctx, n, found)
			delete(wanted, n.Name)
		}
	})
	if err != nil {
		r.Unreadable("list", resource, namespace, err)
	}
	var left []*Node
	for _, n := range nodes {
		if wanted[n.Name] != nil {
			left = append(left, n)
		}
	}
	return left
}

// lookUp reads objects one by one.
func (r *treeReader) lookUp(ctx context.Context, resource schema.GroupVersionResource, nodes []*Node, whole bool) {
	parallel.Each(ctx, kit.AtOnce, nodes, func(ctx context.Context, n *Node) struct{} {
		if r.lookups.Add(1) > mostLookups {
			n.Reason = "not read"
			r.Omitted.Add("the state of further objects: at most %d without the deployment's labels are read", mostLookups)
			return struct{}{}
		}
		found, err := r.One(ctx, resource, n.Namespace, n.Name, whole)
		switch {
		case apierrors.IsNotFound(err):
			n.Health, n.Reason = string(health.Missing), "it does not exist"
		case err != nil:
			n.Reason = "it could not be read"
			if apierrors.IsForbidden(err) {
				n.Reason = "you may not get it"
			}
			r.Unreadable("get", resource, n.Namespace, err)
		default:
			r.see(ctx, n, found)
		}
		return struct{}{}
	})
}

// see records the state of an object.
func (r *treeReader) see(ctx context.Context, n *Node, found kit.Sighting) {
	created := found.GetCreationTimestamp()
	n.UID, n.Created, n.Health, n.Reason = found.GetUID(), &created, HealthyWord, ""
	if found.Body == nil {
		if found.GetDeletionTimestamp() != nil {
			n.Health, n.Reason = string(health.Terminating), "it is being deleted"
		}
		return
	}
	n.selector, _ = health.Selector(found.Body)
	if n.groupKind() == PodKind.GroupKind() {
		n.Containers = LogContainers(found.Body)
	}
	state, message, err := r.rules.Look(ctx, claims{r.Explorer}, found.Body)
	switch {
	case err != nil:
		n.Health, n.Reason = string(health.Unknown), err.Error()
	case state != "":
		n.Health, n.Reason = string(state), message
	}
}
