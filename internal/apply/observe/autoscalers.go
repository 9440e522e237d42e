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
		sight, err := s.sight(ctx, client, in)
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

// autoscalersIn are the autoscalers in a namespace, or why they are not known.
func autoscalersIn(ctx context.Context, client *tenant.Client, namespace string) ([]autoscaling.Autoscaler, autoscaling.Unread, error) {
	var scalers []autoscaling.Autoscaler
	var horizontal, vertical []string // resources that the account may not list
	for _, kind := range autoscaling.Kinds {
		served, err := client.Kinds().Preferred(ctx, kind)
		if discovery.IsNoKind(err) {
			continue
		}
		if err != nil {
			return nil, autoscaling.Unread{}, err
		}
		found, err := autoscalersOf(ctx, client, tenant.Ref{Resource: served.Resource, Namespace: namespace})
		resource := served.Resource.GroupResource().String()
		switch {
		case apierrors.IsForbidden(err) && autoscaling.IsVertical(kind):
			vertical = append(vertical, resource)
		case apierrors.IsForbidden(err):
			horizontal = append(horizontal, resource)
		case err != nil && !apierrors.IsNotFound(err):
			return nil, autoscaling.Unread{}, fmt.Errorf("listing %s in namespace %s: %w", resource, namespace, err)
		}
		scalers = append(scalers, found...)
	}
	return scalers, autoscaling.Unread{Horizontal: forbidden(horizontal, namespace), Vertical: forbidden(vertical, namespace)}, nil
}

func forbidden(resources []string, namespace string) string {
	if len(resources) == 0 {
		return ""
	}
	return fmt.Sprintf("the ServiceAccount has no permission to list %s in namespace %s", strings.Join(resources, ", "), namespace)
}

// autoscalersOf reads a collection of autoscalers.
func autoscalersOf(ctx context.Context, client *tenant.Client, ref tenant.Ref) ([]autoscaling.Autoscaler, error) {
	var scalers []autoscaling.Autoscaler
	options := metav1.ListOptions{Limit: tenant.PageSize}
	for read := 0; read < mostAutoscalers; {
		page, err := client.ListPage(ctx, ref, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if scaler, found := autoscaling.Of(&page.Items[i]); found {
				scalers = append(scalers, scaler)
			}
		}
		read += len(page.Items)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	return scalers, nil
}

// sight reads the values of the fields that leave, and finds out which of them are the replicas.
func (s *scalable) sight(ctx context.Context, client *tenant.Client, in *plan.Input) (autoscaling.Sight, error) {
	sight := autoscaling.Sight{Replicas: autoscaling.Replicas, Regained: s.regained}
	live := &unstructured.Unstructured{}
	if len(s.leaving) > 0 {
		var err error
		live, err = client.Get(ctx, tenant.RefTo(s.object.ID, s.object.Resource))
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
		sight.Replicas = replicasOf(ctx, client, in, s.object, leaving)
	}
	sight.Scaled = s.scaled && fieldmanager.Has(s.object.Desired, sight.Replicas)
	sight.Leaving = slices.DeleteFunc(leaving, func(field autoscaling.Leaving) bool {
		return !field.Ignored && !autoscaling.MaySet(field.Path, sight.Replicas)
	})
	return sight, nil
}

// replicasOf is the path of the replicas of a custom resource: the one that its CRD names, in the bundle or on the cluster. If the
// account may not read the CRD, it is the usual one, or the only number that leaves.
func replicasOf(ctx context.Context, client *tenant.Client, in *plan.Input, object plan.Object, leaving []autoscaling.Leaving) fieldpath.Path {
	id := crds.IDOfCRD(object.Resource.GroupResource())
	for _, other := range in.Desired {
		if other.ID == id {
			if path := autoscaling.ReplicasIn(other.Desired, object.Resource.Version); path != nil {
				return path
			}
		}
	}
	crd, err := client.Get(ctx, tenant.Ref{Resource: crds.Resource, Name: id.Name})
	if err == nil {
		if path := autoscaling.ReplicasIn(crd, object.Resource.Version); path != nil {
			return path
		}
		return autoscaling.Replicas
	}
	numbers := slices.DeleteFunc(slices.Clone(leaving), func(field autoscaling.Leaving) bool {
		_, isNumber := field.Value.(int64)
		return !isNumber
	})
	if len(numbers) == 1 {
		return numbers[0].Path
	}
	return autoscaling.Replicas
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
