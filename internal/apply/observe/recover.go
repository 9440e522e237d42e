// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
)

// Recovered is the part of a lost inventory that was found again.
type Recovered struct {
	// Entries of objects that bear the owner's labels and that its field manager
	// applied. Labels alone prove nothing.
	Entries []inventory.Entry
	// Unseen are the kinds, and groups of kinds, that could not be searched, sorted.
	Unseen []string
}

// Recover looks for all objects of an owner when its inventory was lost: with one metadata
// LIST for each served kind, or for each namespace where the ServiceAccount may list it only there.
// An error means that something could not be read.
func Recover(ctx context.Context, client *tenant.Client, owner inventory.Owner, namespaces ...string) (Recovered, error) {
	kinds, silent, err := client.Kinds().Listable(ctx)
	if err != nil {
		return Recovered{}, fmt.Errorf("looking for the objects of %s: %w", owner, err)
	}
	search := recovery{client: client, owner: owner, namespaces: namespaces}
	found := parallel.Each(ctx, parallel.Default, kinds, search.kind)
	result, errs := Recovered{Unseen: silent}, []error{ctx.Err()}
	for i, of := range found {
		errs = append(errs, of.err)
		result.Entries = append(result.Entries, of.entries...)
		if of.unseen {
			result.Unseen = append(result.Unseen, kinds[i].GroupKind().String())
		}
	}
	slices.Sort(result.Unseen)
	if err := objecterror.Join(errs); err != nil {
		return Recovered{}, fmt.Errorf("looking for the objects of %s: %w", owner, err)
	}
	return result, nil
}

type recovery struct {
	client     *tenant.Client
	owner      inventory.Owner
	namespaces []string
}

type recoveredKind struct {
	entries []inventory.Entry
	unseen  bool
	err     error
}

// kind searches one kind in the whole cluster or, if the tenant may not list it there, in each of the known namespaces. Unseen says
// that a part of the objects could not be listed.
func (r recovery) kind(ctx context.Context, kind discovery.Listed) recoveredKind {
	ref := tenant.Ref{Resource: kind.Served.Resource}
	found, err := r.list(ctx, ref, kind.GroupVersionKind)
	if !apierrors.IsForbidden(err) {
		return recoveredKind{entries: found, err: err}
	}
	if !kind.Served.Namespaced {
		return recoveredKind{unseen: true}
	}
	all := recoveredKind{}
	for _, namespace := range r.namespaces {
		ref.Namespace = namespace
		found, err := r.list(ctx, ref, kind.GroupVersionKind)
		switch {
		case apierrors.IsForbidden(err):
			all.unseen = true
		case err != nil:
			return recoveredKind{err: err}
		}
		all.entries = append(all.entries, found...)
	}
	return all
}

// list finds the objects of the owner in one collection.
func (r recovery) list(ctx context.Context, ref tenant.Ref, kind schema.GroupVersionKind) ([]inventory.Entry, error) {
	options := metav1.ListOptions{Limit: tenant.PageSize, LabelSelector: labels.SelectorFromSet(r.owner.Labels()).String()}
	var entries []inventory.Entry
	for {
		page, err := r.client.ListMetadata(ctx, ref, options)
		if objecterror.NotServed(err) || apierrors.IsMethodNotSupported(err) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			item := &page.Items[i]
			if inventory.HashFields(item.ManagedFields, r.owner.Manager()).IsZero() {
				continue
			}
			id := inventory.ID{Group: kind.Group, Kind: kind.Kind, Namespace: item.Namespace, Name: item.Name}
			entries = append(entries, inventory.Entry{ID: id, Version: kind.Version})
		}
		if page.Continue == "" {
			return entries, nil
		}
		options.Continue = page.Continue
	}
}
