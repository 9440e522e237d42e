// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Untouched is how the objects of an inventory were found, if each of them is as it was left. The zero value is about none.
type Untouched struct {
	Kinds map[schema.GroupKind]plan.Kind
	// Entries are those of the inventory, and Versions the resource versions of their objects; empty for one that may be gone.
	Entries  []inventory.Entry
	Versions []string
}

// Sighted is an object of an inventory. Version is the resource version at which it was read; empty where that is noted elsewhere.
type Sighted struct {
	inventory.ID
	Resource schema.GroupVersionResource
	Version  string
}

// All are the objects that exist.
func (u *Untouched) All() iter.Seq[Sighted] {
	return func(yield func(Sighted) bool) {
		for at, version := range u.Versions {
			id := u.Entries[at].ID
			if version != "" && !yield(Sighted{ID: id, Resource: u.Kinds[id.GroupKind()].Resource, Version: version}) {
				return
			}
		}
	}
}

// Version is the resource version of an object; empty if it is not one of them, or may be gone.
func (u *Untouched) Version(id inventory.ID) string {
	at, found := slices.BinarySearchFunc(u.Entries, id, func(e inventory.Entry, id inventory.ID) int { return e.Compare(id) })
	if !found {
		return ""
	}
	return u.Versions[at]
}

// Applied reads, as the tenant, the metadata of the objects of an inventory, in the versions in which they were applied, with one
// LIST a kind and namespace, and tells whether each object is as it was left. It keeps nothing of an object but its version. An
// error means that a kind is not served. What cannot be read is not as it was left.
func Applied(ctx context.Context, client *tenant.Client, owner inventory.Owner, applied inventory.Inventory, protection ownership.Protection) (found Untouched, same bool, err error) {
	found = Untouched{Kinds: map[schema.GroupKind]plan.Kind{}, Entries: applied.Entries, Versions: make([]string, applied.Len())}
	var runs []run
	for from := 0; from < applied.Len(); {
		first := applied.Entries[from]
		kind, err := found.kind(ctx, client, first)
		if err != nil {
			return Untouched{}, false, err
		}
		to := from + 1
		for to < applied.Len() && applied.Entries[to].Namespace == first.Namespace && applied.Entries[to].GroupKind() == first.GroupKind() {
			to++
		}
		runs = append(runs, run{
			ref:  tenant.Ref{Resource: kind.Resource, Namespace: first.Namespace},
			fits: kind.Namespaced == (first.Namespace != ""), entries: applied.Entries[from:to], versions: found.Versions[from:to],
		})
		from = to
	}
	c := comparing{client: client, rules: plan.Input{Owner: owner, Rules: plan.Rules{Protection: protection}}}
	return found, c.all(ctx, runs), nil
}

// kind finds out how the kind of an entry is served.
func (u *Untouched) kind(ctx context.Context, client *tenant.Client, of inventory.Entry) (plan.Kind, error) {
	kind := of.GroupKind()
	if known, found := u.Kinds[kind]; found {
		return known, nil
	}
	served, err := client.Kinds().Find(ctx, kind.WithVersion(of.Version))
	if err != nil {
		return plan.Kind{}, fmt.Errorf("observing %s: %w", of.ID, err)
	}
	u.Kinds[kind] = plan.Kind{Resource: served.Resource, Namespaced: served.Namespaced}
	return u.Kinds[kind], nil
}

// run is the part of an inventory with objects of one kind and namespace, sorted by name, and their versions as far as they were
// found.
type run struct {
	ref      tenant.Ref
	fits     bool // the kind is still namespaced, or still is not
	entries  []inventory.Entry
	versions []string
}

// comparing compares objects with an inventory.
type comparing struct {
	client *tenant.Client
	rules  plan.Input
}

// place is one object of a run.
type place struct {
	run
	at int
}

// all tells whether the objects of all runs are as they were left.
func (c comparing) all(ctx context.Context, runs []run) bool {
	var single []place
	for i, result := range parallel.Each(ctx, parallel.Default, runs, c.list) {
		switch result {
		case differ:
			return false
		case unlisted:
			for at := range runs[i].entries {
				single = append(single, place{runs[i], at})
			}
		case agree:
		}
	}
	if slices.Contains(parallel.Each(ctx, parallel.Default, single, c.single), differ) {
		return false
	}
	return !slices.ContainsFunc(runs, c.lacks)
}

// comparison is the result of comparing objects.
type comparison int

const (
	differ   comparison = iota // some object is not as it was left, or could not be read
	agree                      // all that exist are as they were left
	unlisted                   // they are better read one by one: see liveReader.list
)

// list compares the objects of a run by listing its collection.
func (c comparing) list(ctx context.Context, r run) comparison {
	if !r.fits {
		return differ
	}
	if len(r.entries) == 1 {
		return unlisted
	}
	options := metav1.ListOptions{Limit: tenant.PageSize}
	next := 0 // the API server lists objects by name, too
	for {
		page, err := c.client.ListMetadata(ctx, r.ref, options)
		switch {
		case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err):
			return unlisted
		case err != nil:
			return differ
		}
		for i := range page.Items {
			at, ours := r.find(page.Items[i].Name, next)
			if !ours {
				continue
			}
			if next = at + 1; c.object(r, at, &page.Items[i]) == differ {
				return differ
			}
		}
		if page.Continue == "" {
			return agree
		}
		if left := page.RemainingItemCount; left != nil && *left > int64(crowd*len(r.entries)) {
			return unlisted
		}
		options.Continue = page.Continue
	}
}

// find returns the position of the object with a name, which is probably the given one.
func (r run) find(name string, probably int) (at int, ours bool) {
	if probably < len(r.entries) && r.entries[probably].Name == name {
		return probably, true
	}
	return slices.BinarySearchFunc(r.entries, name, func(e inventory.Entry, name string) int { return strings.Compare(e.Name, name) })
}

// single reads one object, and compares it.
func (c comparing) single(ctx context.Context, p place) comparison {
	object, err := c.client.Metadata(ctx, tenant.RefTo(p.entries[p.at].ID, p.ref.Resource))
	switch {
	case apierrors.IsNotFound(err):
		return agree // see lacks
	case err != nil:
		return differ
	}
	return c.object(p.run, p.at, object)
}

// object compares an object that exists.
func (c comparing) object(r run, at int, object metav1.Object) comparison {
	r.versions[at] = object.GetResourceVersion()
	live := ownership.LiveOf(object, c.rules.Owner)
	if !c.rules.Untouched(r.entries[at], &live) {
		return differ
	}
	return agree
}

// lacks tells whether an object of a run does not exist and should.
func (c comparing) lacks(r run) bool {
	for at, version := range r.versions {
		if version == "" && !c.rules.Untouched(r.entries[at], nil) {
			return true
		}
	}
	return false
}
