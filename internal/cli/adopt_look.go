// SPDX-License-Identifier: Apache-2.0

package cli

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
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/convert"
)

// What adopt does with an object of the bundle.
const (
	takenOver = "take over" // it has another owner or none: it is released, and then adopted
	created   = "create"    // it does not exist
	kept      = "keep"      // the deployment owns it already
	inTheWay  = "in the way"
)

// adoption is what a deployment would take over, and what would be left.
type adoption struct {
	Deployment string          `json:"deployment"`
	Objects    []adoptedObject `json:"objects"`
	Former     []former        `json:"formerOwners,omitempty"`
	Restarts   []restart       `json:"restarts,omitempty"`
	Leftovers  []leftover      `json:"leftovers,omitempty"`
	Notes      []string        `json:"notes,omitempty"`

	owner    inventory.Owner
	operator bool // the bundle has the format registry+v1
}

// adoptedObject is one object of the bundle.
type adoptedObject struct {
	ID     string `json:"object"`
	Action string `json:"action"`
	Owner  string `json:"owner,omitempty"` // its current owner

	id   inventory.ID
	kind schema.GroupVersionKind
	live *metav1.PartialObjectMetadata
}

// adopter reads and changes a cluster with the user's permissions.
type adopter struct {
	*cluster

	any    client.Client // of all kinds that the cluster serves
	app    *app
	owner  inventory.Owner
	object *v1alpha1.BundleDeployment
	former []former // whom the user named
}

func (a *app) newAdopter(c *cluster, d *v1alpha1.BundleDeployment) (*adopter, error) {
	config, err := a.restConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	all, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the cluster: %w", err)
	}
	return &adopter{cluster: c, any: all, app: a, object: d, owner: inventory.Owner{Namespace: d.Namespace, Name: d.Name}}, nil
}

// look compares the bundle with the cluster.
func (w *adopter) look(ctx context.Context, result convert.Result) (adoption, error) {
	found := adoption{Deployment: w.owner.Namespace + "/" + w.owner.Name, owner: w.owner, operator: result.Format == convert.RegistryV1}
	for _, object := range w.objectsOf(result) {
		one, err := w.lookAt(ctx, object)
		if err != nil {
			return found, err
		}
		if one.Action == takenOver {
			if again, err := w.wouldRestart(ctx, object); err != nil {
				found.Notes = append(found.Notes, fmt.Sprintf("whether %s restarts is not known: %v", one.ID, err))
			} else if len(again.Because) > 0 {
				found.Restarts = append(found.Restarts, again)
			}
		}
		found.Objects = append(found.Objects, one)
	}
	for _, hook := range result.Hooks { // what is left of the last run would be in the way of the next one
		one, err := w.lookAt(ctx, hook.Object)
		if err != nil {
			return found, err
		}
		if one.live != nil {
			found.Objects = append(found.Objects, one)
		}
	}
	slices.SortStableFunc(found.Objects, func(a, b adoptedObject) int { return a.id.Compare(b.id) })
	found.Former = formerOwners(found.Objects, w.object.InstallNamespaceOrDefault(), w.former...)
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
func (w *adopter) lookAt(ctx context.Context, object *unstructured.Unstructured) (adoptedObject, error) {
	one := adoptedObject{kind: object.GroupVersionKind(), Action: created}
	if object.GetNamespace() == "" {
		namespaced, err := w.any.IsObjectNamespaced(object)
		if err == nil && namespaced {
			object.SetNamespace(w.object.InstallNamespaceOrDefault())
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
	one.live = live
	seen := plan.LiveOf(live, w.owner)
	one.Owner = seen.Holder(w.owner)
	switch seen.ClaimOf(w.owner, plan.None) {
	case plan.Owned:
		one.Action, one.Owner = kept, ""
	case plan.Foreign:
		one.Action = inTheWay
	default:
		one.Action = takenOver
	}
	return one, nil
}

// with are the objects with an action.
func (f adoption) with(action string) []adoptedObject {
	return slices.DeleteFunc(slices.Clone(f.Objects), func(o adoptedObject) bool { return o.Action != action })
}
