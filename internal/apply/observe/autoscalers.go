// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/fieldmanager"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/autoscaling"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
)

// scalable is what the metadata of an object that is about to be written says about fields of autoscalers.
type scalable struct {
	object   plan.Object
	leaving  []fieldpath.Path
	regained []fieldpath.Path
	scaled   bool
}

// scalableIn tells whether an object is about to be written and has fields of autoscalers; nil for most.
func scalableIn(object plan.Object, entry inventory.Entry, live ownership.Live, meta metav1.Object, owner inventory.Owner) *scalable {
	if entry.Confirmed() && !entry.Begun && entry.Rendered == object.Rendered && entry.Fields == live.Fields {
		return nil
	}
	entries := meta.GetManagedFields()
	found := scalable{object: object, scaled: fieldmanager.Scaled(entries), regained: fieldmanager.Regained(entries, object.Desired)}
	if entry.Rendered != object.Rendered || !entry.Confirmed() || entry.Begun {
		found.leaving = fieldmanager.Leaving(entries, object, owner.Manager(), !entry.Confirmed())
	}
	if len(found.leaving)+len(found.regained) == 0 && !found.scaled {
		return nil
	}
	return &found
}

// concerned tells whether the fields concern an autoscaler, or clients that the spec leaves them to, whether or not an autoscaler
// scales the object: the fields of a custom resource that leave have any names.
func (s *scalable) concerned() bool {
	return fieldmanager.BuiltIn(s.object.Desired) || s.scaled || len(s.regained) > 0 ||
		slices.ContainsFunc(s.leaving, func(path fieldpath.Path) bool { return fieldmanager.IsIgnored(path, s.object) })
}

// readAutoscalers reads the autoscalers in the namespaces of objects with fields that autoscalers may set, and the values of
// these fields. That an account may not read them is part of the input.
func readAutoscalers(ctx context.Context, client *tenant.Client, in *plan.Input, found []*scalable) error {
	if len(found) == 0 {
		return nil
	}
	in.Scaling = map[inventory.ID]autoscaling.Sight{}
	unread := map[string]autoscaling.Unread{}
	definitions := definitionReader{client: client, read: map[string]definition{}}
	for _, s := range found {
		namespace := s.object.Namespace
		if _, done := unread[namespace]; !done {
			scalers, why, err := autoscalersIn(ctx, client, namespace)
			if err != nil && in.Keeping && ctx.Err() == nil {
				text := objecterror.OneLine(err.Error())
				why, err = autoscaling.Unread{Horizontal: text, Vertical: text}, nil
			}
			if err != nil {
				return err
			}
			in.Autoscalers = append(in.Autoscalers, scalers...)
			unread[namespace] = why
		}
		if !s.concerned() && !in.Scales(s.object.ID) {
			continue
		}
		sight, err := s.sight(ctx, definitions, in)
		if err != nil {
			return err
		}
		sight.Unread = unread[namespace]
		in.Scaling[s.object.ID] = sight
	}
	return nil
}

// mostAutoscalers bounds the autoscalers of a kind that are read in a namespace.
const mostAutoscalers = 5000

// autoscalersIn are the autoscalers in a namespace, and why others are not known.
func autoscalersIn(ctx context.Context, client *tenant.Client, namespace string) ([]autoscaling.Autoscaler, autoscaling.Unread, error) {
	var scalers []autoscaling.Autoscaler
	var horizontal, vertical gaps
	for _, kind := range autoscaling.Kinds {
		served, err := client.Kinds().Preferred(ctx, kind)
		if discovery.IsNoKind(err) {
			continue
		}
		if err != nil {
			return nil, autoscaling.Unread{}, err
		}
		noted := &horizontal
		if autoscaling.IsVertical(kind) {
			noted = &vertical
		}
		found, whole, err := autoscalersOf(ctx, client, tenant.Ref{Resource: served.Resource, Namespace: namespace})
		resource := served.Resource.GroupResource().String()
		switch {
		case apierrors.IsForbidden(err):
			noted.forbidden = append(noted.forbidden, resource)
		case err != nil && !apierrors.IsNotFound(err):
			return nil, autoscaling.Unread{}, fmt.Errorf("listing %s in namespace %s: %w", resource, namespace, err)
		case err == nil && !whole:
			noted.tooMany = append(noted.tooMany, resource)
		}
		scalers = append(scalers, found...)
	}
	return scalers, autoscaling.Unread{Horizontal: horizontal.in(namespace), Vertical: vertical.in(namespace)}, nil
}

// gaps are resources of autoscalers that are not known, or not all.
type gaps struct{ forbidden, tooMany []string }

func (g gaps) in(namespace string) string {
	var why []string
	if len(g.forbidden) > 0 {
		why = append(why, fmt.Sprintf("the ServiceAccount has no permission to list %s in namespace %s", strings.Join(g.forbidden, ", "), namespace))
	}
	for _, resource := range g.tooMany {
		why = append(why, fmt.Sprintf("namespace %s has more than %d %s; the others were not read", namespace, mostAutoscalers, resource))
	}
	return strings.Join(why, "; ")
}

// autoscalersOf reads a collection of autoscalers, up to a bound. It tells whether these are all.
func autoscalersOf(ctx context.Context, client *tenant.Client, ref tenant.Ref) (scalers []autoscaling.Autoscaler, whole bool, err error) {
	whole, err = client.EachItem(ctx, ref, "", mostAutoscalers/tenant.PageSize, func(object *unstructured.Unstructured) bool {
		if scaler, found := autoscaling.Of(object); found {
			scalers = append(scalers, scaler)
		}
		return true
	})
	return scalers, whole, err
}

// sight reads the values of the fields that leave, and finds out which of them are the replicas.
func (s *scalable) sight(ctx context.Context, definitions definitionReader, in *plan.Input) (autoscaling.Sight, error) {
	sight := autoscaling.Sight{Replicas: autoscaling.Replicas, Regained: s.regained}
	live := &unstructured.Unstructured{}
	if len(s.leaving) > 0 {
		var err error
		live, err = definitions.client.Get(ctx, tenant.RefTo(s.object.ID, s.object.Resource))
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			return sight, nil
		case err != nil:
			return sight, fmt.Errorf("reading %s: %w", s.object.ID, err)
		}
	}
	var leaving []autoscaling.Leaving
	for _, path := range s.leaving {
		if value, found := fieldmanager.ValueAt(live, path); found {
			leaving = append(leaving, autoscaling.Leaving{Path: path, Value: value, Ignored: fieldmanager.IsIgnored(path, s.object)})
		}
	}
	if !fieldmanager.BuiltIn(s.object.Desired) {
		var err error
		if sight.Replicas, err = definitions.replicasOf(ctx, in, s.object, leaving); err != nil {
			return sight, err
		}
	}
	sight.Scaled = s.scaled && fieldmanager.Has(s.object.Desired, sight.Replicas)
	sight.Leaving = slices.DeleteFunc(leaving, func(field autoscaling.Leaving) bool {
		return !field.Ignored && !autoscaling.MaySet(field.Path, sight.Replicas)
	})
	return sight, nil
}

// definitionReader reads each CRD once, by its name.
type definitionReader struct {
	client *tenant.Client
	read   map[string]definition
}

type definition struct {
	crd *unstructured.Unstructured
	err error
}

func (r definitionReader) get(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	found, known := r.read[name]
	if !known {
		found.crd, found.err = r.client.Get(ctx, tenant.Ref{Resource: crds.Resource, Name: name})
		r.read[name] = found
	}
	return found.crd, found.err
}

// replicasOf is the path of the replicas of a custom resource: the one that its CRD names, in the bundle or on the cluster. If there is
// no CRD, or the account may not read it, it is the usual one, or the only number that leaves.
func (r definitionReader) replicasOf(ctx context.Context, in *plan.Input, object plan.Object, leaving []autoscaling.Leaving) (fieldpath.Path, error) {
	id := crds.IDOfCRD(object.Resource.GroupResource())
	for _, other := range in.Desired {
		if other.ID == id {
			if path := autoscaling.ReplicasIn(other.Desired, object.Resource.Version); path != nil {
				return path, nil
			}
		}
	}
	crd, err := r.get(ctx, id.Name)
	switch {
	case err == nil:
		if path := autoscaling.ReplicasIn(crd, object.Resource.Version); path != nil {
			return path, nil
		}
		return autoscaling.Replicas, nil
	case !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading CRD %s: %w", id.Name, err)
	}
	numbers := slices.DeleteFunc(slices.Clone(leaving), func(field autoscaling.Leaving) bool {
		_, isNumber := field.Value.(int64)
		return !isNumber
	})
	if len(numbers) == 1 {
		return numbers[0].Path, nil
	}
	return autoscaling.Replicas, nil
}

// scalables are those of the sightings, in the order of their objects.
func scalables(sightings []Sighting) []*scalable {
	found := map[inventory.ID]*scalable{}
	for _, s := range sightings {
		if s.scalable != nil {
			found[s.id] = s.scalable
		}
	}
	var sorted []*scalable
	for _, id := range slices.SortedFunc(maps.Keys(found), inventory.ID.Compare) {
		sorted = append(sorted, found[id])
	}
	return sorted
}
