// SPDX-License-Identifier: Apache-2.0

package trace

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
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// traceVerdict is the result of a trace.
type traceVerdict string

// Verdicts.
const (
	// ListedVerdict: the inventory of a deployment lists the object, or one of its owners.
	ListedVerdict traceVerdict = "Installed"
	// itselfVerdict: the object is a BundleDeployment, or belongs to one as its source.
	itselfVerdict traceVerdict = "PartOfSatchel"
	// unlistedVerdict: the labels name a deployment, and its inventory does not list the object.
	unlistedVerdict traceVerdict = "LabelsAreWrong"
	// abandonedVerdict: the labels name a deployment that does not exist.
	abandonedVerdict traceVerdict = "DeploymentIsGone"
	// orphanedVerdict: a deployment orphaned the object.
	orphanedVerdict traceVerdict = "LeftBehind"
	// BrokenVerdict: an owner of the object is gone or cannot be read.
	BrokenVerdict traceVerdict = "OwnerIsGone"
	// ForeignVerdict: neither labels nor owners nor inventories relate the object to Satchel.
	ForeignVerdict traceVerdict = "NotInstalled"
)

// Traced is where an object comes from. Its JSON form is what trace -o json prints.
type Traced struct {
	Object      Link         `json:"object"`
	Owners      []Link       `json:"owners,omitempty"`
	Verdict     traceVerdict `json:"verdict"`
	Explanation string       `json:"explanation"`
	Deployment  *Deployment  `json:"deployment,omitempty"`
	Source      *Source      `json:"source,omitempty"`
	Delivery    *Delivery    `json:"delivery,omitempty"`
	Notes       []string     `json:"notes,omitempty"`
	Omitted     []string     `json:"omitted,omitempty"`
}

// Link is an object on the way up.
type Link struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// ID is the identity of the object in inventories.
func (l Link) ID() inventory.ID {
	return inventory.ID{Group: l.Group, Kind: l.Kind, Namespace: l.Namespace, Name: l.Name}
}

// highest bounds the way up: owner references may form a ring.
const highest = 16

// Climber follows one object.
type Climber struct {
	*kit.Explorer
	Result Traced
	Links  []Link // the object and its owners
	claims []Claim
	known  map[inventory.Owner]*v1alpha1.BundleDeployment // nil for those that do not exist
}

// Claim is a deployment that the metadata of an object names.
type Claim struct {
	link     int // the object with the metadata
	owner    inventory.Owner
	labelled bool // by labels; else by a field manager
}

// trace follows an object up to its deployment.
func trace(ctx context.Context, x *kit.Explorer, word, name string) (Traced, error) {
	mapping, object, err := asked(ctx, x, word, name)
	if err != nil {
		return Traced{}, err
	}
	c := &Climber{Explorer: x, known: map[inventory.Owner]*v1alpha1.BundleDeployment{}}
	d, err := c.climb(ctx, mapping, object)
	if err != nil {
		return Traced{}, err
	}
	c.Result.Object, c.Result.Owners = c.Links[0], c.Links[1:]
	if d != nil {
		c.Result.Deployment = NewTraceDeployment(d)
		c.Result.Source = c.sourceOf(ctx, d)
		c.Result.Delivery = c.deliveryOf(ctx, d)
	}
	c.Result.Omitted = x.Omitted.List()
	return c.Result, context.Cause(ctx)
}

// climb follows owners until the inventory of a deployment lists one. If no labels lead to a deployment, it searches all
// inventories.
func (c *Climber) climb(ctx context.Context, mapping *meta.RESTMapping, object kit.Sighting) (*v1alpha1.BundleDeployment, error) {
	for range highest {
		kind := mapping.GroupVersionKind
		c.Links = append(c.Links, Link{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()})
		if d, err := c.claimed(ctx, object); d != nil || err != nil {
			return d, err
		}
		if d, err := c.partOfSatchel(ctx, kind, object); d != nil || err != nil {
			return d, err
		}
		owner := ControllerOf(object)
		if owner == nil {
			break
		}
		var err error
		if mapping, object, err = c.Owner(ctx, object.GetNamespace(), *owner); err != nil {
			return nil, err
		}
		if mapping == nil {
			break
		}
	}
	return c.searched(ctx)
}

// ControllerOf is the owner reference to follow: the controlling one, or else the first.
func ControllerOf(object metav1.Object) *metav1.OwnerReference {
	if controller := metav1.GetControllerOf(object); controller != nil {
		return controller
	}
	if all := object.GetOwnerReferences(); len(all) > 0 {
		return &all[0]
	}
	return nil
}

// Owner reads an owner; without a mapping the trace ends there, and the verdict says why.
func (c *Climber) Owner(ctx context.Context, namespace string, ref metav1.OwnerReference) (*meta.RESTMapping, kit.Sighting, error) {
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	link := Link{Group: kind.Group, Kind: kind.Kind, Namespace: namespace, Name: ref.Name}
	broken := func(how string) (*meta.RESTMapping, kit.Sighting, error) {
		c.Links = append(c.Links, link)
		c.Result.Verdict, c.Result.Explanation = BrokenVerdict, "its owner "+link.ID().String()+" "+how
		return nil, kit.Sighting{}, nil
	}
	if !IsName(ref.Name) {
		return broken("has a name that no object can have")
	}
	mapping, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return broken("is of a kind that the cluster does not serve")
	}
	if err != nil {
		return nil, kit.Sighting{}, fmt.Errorf("looking for the kind %s of an owner: %w", kind.Kind, err)
	}
	link.Namespace = within(mapping, namespace)
	found, err := c.One(ctx, mapping.Resource, link.Namespace, ref.Name, false)
	switch {
	case apierrors.IsNotFound(err):
		return broken("is gone")
	case apierrors.IsForbidden(err):
		c.Unreadable("get", mapping.Resource, link.Namespace, err)
		return broken("cannot be read by you, so its own owners are unknown")
	case err != nil:
		return nil, kit.Sighting{}, fmt.Errorf("reading the owner %s: %w", link.ID(), err)
	case found.GetUID() != ref.UID:
		return broken("is gone; another object of its name took its place")
	}
	return mapping, found, nil
}

// claimed checks whether the deployment that the object's metadata names lists the object.
func (c *Climber) claimed(ctx context.Context, object kit.Sighting) (*v1alpha1.BundleDeployment, error) {
	at := len(c.Links) - 1
	if former := object.GetAnnotations()[v1alpha1.OrphanedAnnotation]; former != "" && (c.Result.Verdict == "" || c.Result.Verdict == orphanedVerdict) {
		c.Result.Verdict = orphanedVerdict
		c.Result.Explanation = fmt.Sprintf("%s was orphaned by BundleDeployment %s; the next deployment that contains it adopts it", c.Links[at].ID(), former)
	}
	for _, made := range ClaimsOf(object) {
		made.link = at
		d, err := c.lookUp(ctx, made.owner)
		if err != nil {
			return nil, err
		}
		if d != nil && c.lists(d, c.Links[at:]) {
			c.found(d, c.Links[at])
			return d, nil
		}
		c.claims = append(c.claims, made)
	}
	return nil, nil
}

// ClaimsOf are the deployments that an object's labels and field managers name.
func ClaimsOf(object metav1.Object) []Claim {
	var claims []Claim
	if owner := inventory.OwnerOf(object.GetLabels()); IsName(owner.Name) && IsName(owner.Namespace) {
		claims = append(claims, Claim{owner: owner, labelled: true})
	}
	for _, entry := range object.GetManagedFields() {
		owner := inventory.OwnerOfManager(entry.Manager)
		if IsName(owner.Name) && IsName(owner.Namespace) && !slices.ContainsFunc(claims, func(c Claim) bool { return c.owner == owner }) {
			claims = append(claims, Claim{owner: owner})
		}
	}
	return claims
}

// IsName tells whether a string can be part of a request's path: names in metadata are not trusted.
func IsName(text string) bool { return text != "" && len(content.IsPathSegmentName(text)) == 0 }

// partOfSatchel ends the trace at a BundleDeployment.
func (c *Climber) partOfSatchel(ctx context.Context, kind schema.GroupVersionKind, object kit.Sighting) (*v1alpha1.BundleDeployment, error) {
	if kind.GroupKind() != v1alpha1.GroupVersion.WithKind(v1alpha1.BundleDeploymentKind).GroupKind() {
		return nil, nil
	}
	d, err := c.lookUp(ctx, inventory.Owner{Namespace: object.GetNamespace(), Name: object.GetName()})
	if d != nil {
		c.Result.Verdict, c.Result.Explanation = itselfVerdict, "it belongs to the BundleDeployment itself"
		if len(c.Links) == 1 {
			c.Result.Explanation = "it is a BundleDeployment, and no other installed it"
		}
	}
	return d, err
}

// lookUp reads a deployment once; nil where it does not exist, or may not be read.
func (c *Climber) lookUp(ctx context.Context, owner inventory.Owner) (*v1alpha1.BundleDeployment, error) {
	if d, known := c.known[owner]; known {
		return d, nil
	}
	resource := v1alpha1.GroupVersion.WithResource(kit.Deployments.Resource)
	read, err := c.One(ctx, resource, owner.Namespace, owner.Name, true)
	var d *v1alpha1.BundleDeployment
	switch {
	case apierrors.IsNotFound(err): // or this cluster has no Satchel
		err = nil
	case apierrors.IsForbidden(err):
		c.Unreadable("get", resource, owner.Namespace, err)
		err = nil
	case err != nil:
		err = fmt.Errorf("reading %s: %w", owner, err)
	default:
		d = new(v1alpha1.BundleDeployment)
		if err = runtime.DefaultUnstructuredConverter.FromUnstructured(read.Body.Object, d); err != nil {
			err = fmt.Errorf("reading %s: %w", owner, err)
		}
	}
	c.known[owner] = d
	return d, err
}

// lists tells whether the inventory of a deployment on this cluster has one of the objects.
func (c *Climber) lists(d *v1alpha1.BundleDeployment, links []Link) bool {
	if effective.IsRemote(d.Spec.Target.ClusterReference) {
		return false // it lists objects of another cluster
	}
	listed, err := inventory.Decode(d.Status.Inventory)
	if err != nil {
		c.Omitted.Add("what BundleDeployment %s/%s installed: %v", d.Namespace, d.Name, err)
		return false
	}
	return slices.ContainsFunc(links, func(l Link) bool { return listed.Has(l.ID()) })
}
