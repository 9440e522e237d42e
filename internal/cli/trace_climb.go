// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// traceVerdict is the result of a trace.
type traceVerdict string

// Verdicts.
const (
	// listedVerdict: the inventory of a deployment lists the object, or one of its owners.
	listedVerdict traceVerdict = "Installed"
	// itselfVerdict: the object is a BundleDeployment, or belongs to one as its source.
	itselfVerdict traceVerdict = "PartOfSatchel"
	// unlistedVerdict: the labels name a deployment, and its inventory does not list the object.
	unlistedVerdict traceVerdict = "LabelsAreWrong"
	// abandonedVerdict: the labels name a deployment that does not exist.
	abandonedVerdict traceVerdict = "DeploymentIsGone"
	// orphanedVerdict: a deployment orphaned the object.
	orphanedVerdict traceVerdict = "LeftBehind"
	// brokenVerdict: an owner of the object is gone or cannot be read.
	brokenVerdict traceVerdict = "OwnerIsGone"
	// foreignVerdict: neither labels nor owners nor inventories relate the object to Satchel.
	foreignVerdict traceVerdict = "NotInstalled"
)

// traced is where an object comes from. Its JSON form is what trace -o json prints.
type traced struct {
	Object      traceLink        `json:"object"`
	Owners      []traceLink      `json:"owners,omitempty"`
	Verdict     traceVerdict     `json:"verdict"`
	Explanation string           `json:"explanation"`
	Deployment  *traceDeployment `json:"deployment,omitempty"`
	Source      *traceSource     `json:"source,omitempty"`
	Notes       []string         `json:"notes,omitempty"`
	Omitted     []string         `json:"omitted,omitempty"`
}

// traceLink is an object on the way up.
type traceLink struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func (l traceLink) id() inventory.ID {
	return inventory.ID{Group: l.Group, Kind: l.Kind, Namespace: l.Namespace, Name: l.Name}
}

// highest bounds the way up: owner references may form a ring.
const highest = 16

// climber follows one object.
type climber struct {
	*explorer
	result traced
	links  []traceLink // the object and its owners
	claims []claim
	known  map[inventory.Owner]*v1alpha1.BundleDeployment // nil for those that do not exist
}

// claim is a deployment that the metadata of an object names.
type claim struct {
	link     int // the object with the metadata
	owner    inventory.Owner
	labelled bool // by labels; else by a field manager
}

// trace follows an object up to its deployment.
func (x *explorer) trace(ctx context.Context, word, name string) (traced, error) {
	mapping, object, err := x.asked(ctx, word, name)
	if err != nil {
		return traced{}, err
	}
	c := &climber{explorer: x, known: map[inventory.Owner]*v1alpha1.BundleDeployment{}}
	d, err := c.climb(ctx, mapping, object)
	if err != nil {
		return traced{}, err
	}
	c.result.Object, c.result.Owners = c.links[0], c.links[1:]
	if d != nil {
		c.result.Deployment = newTraceDeployment(d)
		c.result.Source = c.sourceOf(ctx, d)
	}
	c.result.Omitted = x.omitted.list()
	return c.result, context.Cause(ctx)
}

// climb follows owners until the inventory of a deployment lists one. If no labels lead to a deployment, it searches all
// inventories.
func (c *climber) climb(ctx context.Context, mapping *meta.RESTMapping, object sighting) (*v1alpha1.BundleDeployment, error) {
	for range highest {
		kind := mapping.GroupVersionKind
		c.links = append(c.links, traceLink{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()})
		if d, err := c.claimed(ctx, object); d != nil || err != nil {
			return d, err
		}
		if d, err := c.partOfSatchel(ctx, kind, object); d != nil || err != nil {
			return d, err
		}
		owner := controllerOf(object)
		if owner == nil {
			break
		}
		var err error
		if mapping, object, err = c.owner(ctx, object.GetNamespace(), *owner); err != nil {
			return nil, err
		}
		if mapping == nil {
			break
		}
	}
	return c.searched(ctx)
}

// controllerOf is the owner reference to follow: the controlling one, or else the first.
func controllerOf(object metav1.Object) *metav1.OwnerReference {
	if controller := metav1.GetControllerOf(object); controller != nil {
		return controller
	}
	if all := object.GetOwnerReferences(); len(all) > 0 {
		return &all[0]
	}
	return nil
}

// owner reads an owner; without a mapping the trace ends there, and the verdict says why.
func (c *climber) owner(ctx context.Context, namespace string, ref metav1.OwnerReference) (*meta.RESTMapping, sighting, error) {
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	link := traceLink{Group: kind.Group, Kind: kind.Kind, Namespace: namespace, Name: ref.Name}
	broken := func(how string) (*meta.RESTMapping, sighting, error) {
		c.links = append(c.links, link)
		c.result.Verdict, c.result.Explanation = brokenVerdict, "its owner "+link.id().String()+" "+how
		return nil, sighting{}, nil
	}
	if !isName(ref.Name) {
		return broken("has a name that no object can have")
	}
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return broken("is of a kind that the cluster does not serve")
	}
	if err != nil {
		return nil, sighting{}, fmt.Errorf("looking for the kind %s of an owner: %w", kind.Kind, err)
	}
	link.Namespace = within(mapping, namespace)
	found, err := c.one(ctx, mapping.Resource, link.Namespace, ref.Name, false)
	switch {
	case apierrors.IsNotFound(err):
		return broken("is gone")
	case apierrors.IsForbidden(err):
		c.unreadable("get", mapping.Resource, link.Namespace, err)
		return broken("cannot be read by you, so its own owners are unknown")
	case err != nil:
		return nil, sighting{}, fmt.Errorf("reading the owner %s: %w", link.id(), err)
	case found.GetUID() != ref.UID:
		return broken("is gone; another object of its name took its place")
	}
	return mapping, found, nil
}

// claimed checks whether the deployment that the object's metadata names lists the object.
func (c *climber) claimed(ctx context.Context, object sighting) (*v1alpha1.BundleDeployment, error) {
	at := len(c.links) - 1
	if former := object.GetAnnotations()[v1alpha1.OrphanedAnnotation]; former != "" && (c.result.Verdict == "" || c.result.Verdict == orphanedVerdict) {
		c.result.Verdict = orphanedVerdict
		c.result.Explanation = fmt.Sprintf("%s was orphaned by BundleDeployment %s; the next deployment that contains it adopts it", c.links[at].id(), former)
	}
	for _, made := range claimsOf(object) {
		made.link = at
		d, err := c.lookUp(ctx, made.owner)
		if err != nil {
			return nil, err
		}
		if d != nil && c.lists(d, c.links[at:]) {
			c.found(d, c.links[at])
			return d, nil
		}
		c.claims = append(c.claims, made)
	}
	return nil, nil
}

// claimsOf are the deployments that an object's labels and field managers name.
func claimsOf(object metav1.Object) []claim {
	var claims []claim
	if owner := inventory.OwnerOf(object.GetLabels()); isName(owner.Name) && isName(owner.Namespace) {
		claims = append(claims, claim{owner: owner, labelled: true})
	}
	for _, entry := range object.GetManagedFields() {
		owner := inventory.OwnerOfManager(entry.Manager)
		if isName(owner.Name) && isName(owner.Namespace) && !slices.ContainsFunc(claims, func(c claim) bool { return c.owner == owner }) {
			claims = append(claims, claim{owner: owner})
		}
	}
	return claims
}

// isName tells whether a string can be part of a request's path: names in metadata are not trusted.
func isName(text string) bool { return text != "" && len(content.IsPathSegmentName(text)) == 0 }

// partOfSatchel ends the trace at a BundleDeployment.
func (c *climber) partOfSatchel(ctx context.Context, kind schema.GroupVersionKind, object sighting) (*v1alpha1.BundleDeployment, error) {
	if kind.GroupKind() != v1alpha1.GroupVersion.WithKind(v1alpha1.BundleDeploymentKind).GroupKind() {
		return nil, nil
	}
	d, err := c.lookUp(ctx, inventory.Owner{Namespace: object.GetNamespace(), Name: object.GetName()})
	if d != nil {
		c.result.Verdict, c.result.Explanation = itselfVerdict, "it belongs to the BundleDeployment itself"
		if len(c.links) == 1 {
			c.result.Explanation = "it is a BundleDeployment, and no other installed it"
		}
	}
	return d, err
}

// lookUp reads a deployment once; nil where it does not exist, or may not be read.
func (c *climber) lookUp(ctx context.Context, owner inventory.Owner) (*v1alpha1.BundleDeployment, error) {
	if d, known := c.known[owner]; known {
		return d, nil
	}
	resource := v1alpha1.GroupVersion.WithResource(deployments.resource)
	read, err := c.one(ctx, resource, owner.Namespace, owner.Name, true)
	var d *v1alpha1.BundleDeployment
	switch {
	case apierrors.IsNotFound(err): // or this cluster has no Satchel
		err = nil
	case apierrors.IsForbidden(err):
		c.unreadable("get", resource, owner.Namespace, err)
		err = nil
	case err != nil:
		err = fmt.Errorf("reading %s: %w", owner, err)
	default:
		d = new(v1alpha1.BundleDeployment)
		if err = runtime.DefaultUnstructuredConverter.FromUnstructured(read.body.Object, d); err != nil {
			err = fmt.Errorf("reading %s: %w", owner, err)
		}
	}
	c.known[owner] = d
	return d, err
}

// lists tells whether the inventory of a deployment on this cluster has one of the objects.
func (c *climber) lists(d *v1alpha1.BundleDeployment, links []traceLink) bool {
	if d.Spec.KubeConfig != nil {
		return false // it lists objects of another cluster
	}
	listed, err := inventory.Decode(d.Status.Inventory)
	if err != nil {
		c.omitted.add("what BundleDeployment %s/%s installed: %v", d.Namespace, d.Name, err)
		return false
	}
	return slices.ContainsFunc(links, func(l traceLink) bool { return listed.Has(l.id()) })
}
