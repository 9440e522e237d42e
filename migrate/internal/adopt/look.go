// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// What adopt does with an object of the bundle.
const (
	Adopted     = "adopt"    // it has another owner or none: it is released, and then adopted
	created     = "create"   // it does not exist
	kept        = "keep"     // the deployment owns it already
	conflicting = "conflict" // another BundleDeployment owns it
)

// Adoption is what a deployment would adopt, and which objects of the former owners would be left.
type Adoption struct {
	Deployment string          `json:"deployment"`
	Objects    []AdoptedObject `json:"objects"`
	Former     []Former        `json:"formerOwners,omitempty"`
	Restarts   []Restart       `json:"restarts,omitempty"`
	Leftovers  []leftover      `json:"leftovers,omitempty"`
	Notes      []string        `json:"notes,omitempty"`

	owner    inventory.Owner
	Operator bool `json:"-"` // the bundle has the format registry+v1
}

// AdoptedObject is one object of the bundle.
type AdoptedObject struct {
	ID     string `json:"object"`
	Action string `json:"action"`
	Owner  string `json:"owner,omitempty"` // its current owner

	id   inventory.ID
	kind schema.GroupVersionKind
	Live *metav1.PartialObjectMetadata `json:"-"`
}

// adopter reads and changes a cluster with the user's permissions.
type adopter struct {
	*kit.Cluster

	any    client.Client // of all kinds that the cluster serves
	app    *kit.App
	owner  inventory.Owner
	object *v1alpha1.BundleDeployment
	former []Former // those that the user named
}

func newAdopter(a *kit.App, c *kit.Cluster, d *v1alpha1.BundleDeployment) (*adopter, error) {
	config, err := a.RestConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	all, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	return &adopter{Cluster: c, any: all, app: a, object: d, owner: inventory.Owner{Namespace: d.Namespace, Name: d.Name}}, nil
}

// look compares the bundle with the cluster.
func (w *adopter) look(ctx context.Context, result convert.Result) (Adoption, error) {
	found := Adoption{Deployment: w.owner.Namespace + "/" + w.owner.Name, owner: w.owner, Operator: result.Format == convert.RegistryV1}
	for _, object := range w.objectsOf(result) {
		one, err := w.lookAt(ctx, object)
		if err != nil {
			return found, err
		}
		if one.Action == Adopted {
			if again, err := w.wouldRestart(ctx, object); err != nil {
				found.Notes = append(found.Notes, fmt.Sprintf("cannot determine whether %s restarts: %v", one.ID, err))
			} else if len(again.Because) > 0 {
				found.Restarts = append(found.Restarts, again)
			}
		}
		found.Objects = append(found.Objects, one)
	}
	for _, hook := range result.Hooks { // an object of the last run would be a conflict for the next one
		one, err := w.lookAt(ctx, hook.Object)
		if err != nil {
			return found, err
		}
		if one.Live != nil {
			found.Objects = append(found.Objects, one)
		}
	}
	slices.SortStableFunc(found.Objects, func(a, b AdoptedObject) int { return a.id.Compare(b.id) })
	found.Former = FormerOwners(found.Objects, effective.InstallNamespace(w.object), w.former...)
	leftovers, notes := w.leftovers(ctx, found)
	found.Leftovers, found.Notes = leftovers, append(found.Notes, notes...)
	return found, nil
}

// objectsOf are the objects of a bundle, and the Secrets of its certificates.
func (w *adopter) objectsOf(result convert.Result) []*unstructured.Unstructured {
	objects := slices.Clone(result.Objects)
	secret := func(namespace, name string) {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("v1")
		o.SetKind("Secret")
		o.SetNamespace(namespace)
		o.SetName(name)
		objects = append(objects, o)
	}
	for _, serving := range result.Certificates {
		secret(serving.Namespace, serving.Secret)
	}
	if len(result.Certificates) > 0 {
		authority := certificate.AuthorityID(w.owner)
		secret(authority.Namespace, authority.Name)
	}
	return objects
}

// lookAt returns the owner of an object, and what adopt does with it. A kind that the cluster does not serve has no objects.
func (w *adopter) lookAt(ctx context.Context, object *unstructured.Unstructured) (AdoptedObject, error) {
	one := AdoptedObject{kind: object.GroupVersionKind(), Action: created}
	if object.GetNamespace() == "" {
		namespaced, err := w.any.IsObjectNamespaced(object)
		if err == nil && namespaced {
			object.SetNamespace(effective.InstallNamespace(w.object))
		} else if err != nil && !meta.IsNoMatchError(err) {
			return one, fmt.Errorf("looking up the kind %s: %w", one.kind.Kind, err)
		}
	}
	one.id = inventory.IDOf(object)
	one.ID = one.id.String()
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(one.kind)
	err := w.any.Get(ctx, client.ObjectKeyFromObject(object), live)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return one, nil
	case err != nil:
		return one, fmt.Errorf("reading %s: %w", one.ID, err)
	}
	one.Live = live
	seen := ownership.LiveOf(live, w.owner)
	one.Owner = seen.Holder(w.owner)
	switch seen.ClaimOf(w.owner, ownership.None) {
	case ownership.Owned:
		one.Action, one.Owner = kept, ""
	case ownership.Foreign:
		one.Action = conflicting
	default:
		one.Action = Adopted
	}
	return one, nil
}

// with are the objects with an action.
func (f Adoption) with(action string) []AdoptedObject {
	return slices.DeleteFunc(slices.Clone(f.Objects), func(o AdoptedObject) bool { return o.Action != action })
}
