// SPDX-License-Identifier: Apache-2.0

package see

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/trace"
	"github.com/satchel-dev/satchel/internal/cli/tree"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// mostEvents bounds the events that are read of one namespace, and pageOfEvents those of one request.
const (
	mostEvents   = 50_000
	pageOfEvents = 1000
)

// eventResource is the resource in which events of both APIs are read.
var eventResource = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// eventReader knows which events concern a deployment.
type eventReader struct {
	*kit.Explorer
	target     kit.Target            // without a name: all of Satchel's objects
	everywhere bool                  // in all namespaces
	concerned  map[inventory.ID]bool // the deployment, its source and the inventory
	namespaces []string
	owners     map[inventory.ID]*inventory.ID // what owns an object; nil for nothing
	listed     map[tree.KindInNamespace]bool  // of which all owners are known
	seen       map[string]string              // resource versions of events by their UID
}

// refresh reads the deployment, which says what is concerned.
func (r *eventReader) refresh(ctx context.Context) error {
	if r.target.Name == "" {
		r.namespaces = []string{r.Namespace}
		if r.everywhere {
			r.namespaces = []string{metav1.NamespaceAll}
		}
		return nil
	}
	if r.target.Kind.Name != kit.Deployments.Name {
		return r.refreshOne(ctx)
	}
	d, err := r.Deployment(ctx, r.target)
	if err != nil {
		return err
	}
	listed, err := inventory.Decode(d.Status.Inventory)
	if err != nil {
		return fmt.Errorf("the status of %s %s cannot be read: %w", v1alpha1.BundleDeploymentKind, d.Name, err)
	}
	group := v1alpha1.GroupVersion.Group
	r.concerned = map[inventory.ID]bool{{Group: group, Kind: v1alpha1.BundleDeploymentKind, Namespace: d.Namespace, Name: d.Name}: true}
	if name := effective.SourceName(d); name != "" {
		r.concerned[inventory.ID{Group: group, Kind: v1alpha1.BundleSourceKind, Namespace: d.Namespace, Name: name}] = true
	} else if ref := d.Spec.SourceRef; ref != nil {
		kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
		r.concerned[inventory.ID{Group: kind.Group, Kind: kind.Kind, Namespace: d.Namespace, Name: ref.Name}] = true
	}
	r.namespaces = []string{d.Namespace}
	if effective.IsRemote(d.Spec.Target.ClusterReference) {
		r.Omitted.Add("events of its %s: they are on the cluster of the %s", view.Plural(listed.Len(), "object"), spec.KubeConfigHolder(effective.RemoteCluster(d.Spec.Target.ClusterReference)))
		return nil
	}
	for _, entry := range listed.Entries {
		r.concerned[entry.ID] = true
		namespace := entry.Namespace
		if namespace == "" {
			namespace = metav1.NamespaceDefault // where events of objects of the cluster are
		}
		if !slices.Contains(r.namespaces, namespace) {
			r.namespaces = append(r.namespaces, namespace)
		}
	}
	slices.Sort(r.namespaces)
	return nil
}

// refreshOne is refresh for an object that installs nothing: only it is concerned.
func (r *eventReader) refreshOne(ctx context.Context) error {
	found, err := r.Get(ctx, r.target)
	if err != nil {
		return err
	}
	r.concerned = map[inventory.ID]bool{{
		Group: v1alpha1.GroupVersion.Group, Kind: r.target.Kind.Name, Namespace: found.GetNamespace(), Name: found.GetName(),
	}: true}
	r.namespaces = []string{found.GetNamespace()}
	return nil
}

// read reads what happened so far.
func (r *eventReader) read(ctx context.Context, o eventsOptions) (EventList, error) {
	events := []Event{}
	for _, namespace := range r.namespaces {
		var raw []*corev1.Event
		err := r.eachEvent(ctx, namespace, func(e *corev1.Event) {
			if !o.warnings || e.Type != corev1.EventTypeNormal {
				raw = append(raw, e)
			}
		})
		switch {
		case ctx.Err() != nil:
			return EventList{}, context.Cause(ctx)
		case err != nil:
			r.Unreadable("list", eventResource, namespace, err)
		}
		for _, e := range raw {
			if found := NewEvent(e); r.concerns(ctx, found.Object.ID(), tree.Deepest) {
				events = append(events, found)
				r.seen[string(e.UID)] = e.ResourceVersion
			}
		}
	}
	found := EventList{Events: Merged(events), Omitted: r.Omitted.List()}
	if o.limit > 0 && len(found.Events) > o.limit {
		found.Older = len(found.Events) - o.limit
		found.Events = found.Events[found.Older:]
	}
	return found, nil
}

// eachEvent reads the events of a namespace that may concern the deployment.
func (r *eventReader) eachEvent(ctx context.Context, namespace string, do func(*corev1.Event)) error {
	l := kit.Listing{Resource: eventResource, Namespace: namespace, Whole: true, Limit: mostEvents, Page: pageOfEvents}
	more, err := r.Each(ctx, l, func(found kit.Sighting) {
		if e := typedEvent(found.Body); e != nil && r.mayConcern(NewEvent(e).Object.ID()) {
			do(e)
		}
	})
	if more {
		r.Omitted.Add("some events in the namespace %q: the first %d were looked at", namespace, mostEvents)
	}
	return err
}

func typedEvent(body *unstructured.Unstructured) *corev1.Event {
	e := new(corev1.Event)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(body.Object, e) != nil {
		return nil
	}
	return e
}

// mayConcern tells, without a request, whether an object is concerned or of a kind that can be owned.
func (r *eventReader) mayConcern(id inventory.ID) bool {
	if r.target.Name == "" {
		return id.Group == v1alpha1.GroupVersion.Group
	}
	if r.concerned[id] || r.target.Kind.Name != kit.Deployments.Name {
		return r.concerned[id]
	}
	_, owned := ownable[id.GroupKind()]
	return owned
}

// ownable are the kinds that workloads and operators make.
var ownable = ownableKinds()

func ownableKinds() map[schema.GroupKind]schema.GroupVersionKind {
	kinds := map[schema.GroupKind]schema.GroupVersionKind{}
	for _, made := range tree.Makes {
		for _, kind := range made.Kinds {
			kinds[kind.GroupKind()] = kind
		}
	}
	return kinds
}

// concerns tells whether an object is the deployment's, or owned by one that is.
func (r *eventReader) concerns(ctx context.Context, id inventory.ID, generations int) bool {
	if r.concerned[id] || r.target.Name == "" && r.mayConcern(id) {
		return true
	}
	kind, owned := ownable[id.GroupKind()]
	if !owned || generations == 0 || !slices.Contains(r.namespaces, id.Namespace) {
		return false
	}
	owner := r.ownerOf(ctx, kind, id)
	return owner != nil && r.concerns(ctx, *owner, generations-1)
}

// ownerOf finds the owner of an object: all objects of its kind and namespace are listed once, and a new one is read. For an
// object that is gone it guesses the owner from the name.
func (r *eventReader) ownerOf(ctx context.Context, kind schema.GroupVersionKind, id inventory.ID) *inventory.ID {
	if owner, known := r.owners[id]; known {
		return owner
	}
	mapping, err := r.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil
	}
	at := tree.KindInNamespace{Kind: kind, Namespace: id.Namespace}
	if !r.listed[at] {
		r.listed[at] = true
		l := kit.Listing{Resource: mapping.Resource, Namespace: id.Namespace, Limit: tree.MostScanned}
		_, err := r.Each(ctx, l, func(found kit.Sighting) { r.remember(kind, found) })
		if err != nil {
			r.Unreadable("list", mapping.Resource, id.Namespace, err)
		}
		if owner, known := r.owners[id]; known {
			return owner
		}
	}
	if found, err := r.One(ctx, mapping.Resource, id.Namespace, id.Name, false); err == nil && trace.IsName(id.Name) {
		return r.remember(kind, found)
	} else if apierrors.IsNotFound(err) {
		r.owners[id] = r.presumed(id)
	} else {
		r.owners[id] = nil
	}
	return r.owners[id]
}

// remember records the owner of an object.
func (r *eventReader) remember(kind schema.GroupVersionKind, found kit.Sighting) *inventory.ID {
	id := inventory.ID{Group: kind.Group, Kind: kind.Kind, Namespace: found.GetNamespace(), Name: found.GetName()}
	r.owners[id] = nil
	if ref := trace.ControllerOf(found); ref != nil {
		by := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
		owner := inventory.ID{Group: by.Group, Kind: by.Kind, Namespace: found.GetNamespace(), Name: ref.Name}
		if cluster := (inventory.ID{Group: by.Group, Kind: by.Kind, Name: ref.Name}); r.concerned[cluster] {
			owner = cluster
		}
		r.owners[id] = &owner
	}
	return r.owners[id]
}

// presumed guesses the owner from the name of an object: the names of Pods and ReplicaSets begin with that of their owner.
func (r *eventReader) presumed(id inventory.ID) *inventory.ID {
	at := strings.LastIndexByte(id.Name, '-')
	if at <= 0 {
		return nil
	}
	var makers []schema.GroupVersionKind
	switch id.GroupKind() {
	case tree.PodKind.GroupKind():
		makers = []schema.GroupVersionKind{tree.ReplicaSetKind, tree.StatefulSetKind, tree.DaemonSetKind, tree.JobKind}
	case tree.ReplicaSetKind.GroupKind():
		makers = []schema.GroupVersionKind{tree.DeploymentKind}
	}
	for _, kind := range makers {
		maker := inventory.ID{Group: kind.Group, Kind: kind.Kind, Namespace: id.Namespace, Name: id.Name[:at]}
		if _, known := r.owners[maker]; known || r.concerned[maker] {
			return &maker
		}
	}
	return nil
}
