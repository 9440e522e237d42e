// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/listed"
)

// crowd is how many foreign objects a LIST may return for each of ours before
// single GETs are cheaper.
const crowd = 100

// Sighting is the result of reading one object.
type Sighting struct {
	id    inventory.ID
	Live  *ownership.Live // nil: it does not exist
	Error error
	// unserved: the API server has no such resource.
	Unserved bool
	// free: it does not exist by a shared list. See plan.Observed.
	free     bool
	scalable *scalable
}

// collection is the objects to look at in one kind and namespace.
type collection struct {
	ref        tenant.Ref
	ids        []inventory.ID
	discovered bool // not known from a CRD of the bundle
	fresh      bool // no object was planned before
}

// mostShared is how many objects a collection of a deployment may have for their absence to be taken from a shared list.
const mostShared = 16

// readLive reads the metadata of everything desired or listed in the inventory: of each collection at once, and then one by one the
// objects of collections that cannot be listed, or for which a LIST would cost more.
func readLive(ctx context.Context, client *tenant.Client, in *plan.Input, limit int) error {
	reader := liveReader{client: client, owner: in.Owner, desired: map[inventory.ID]plan.Object{}, previous: in.Previous}
	for _, object := range in.Desired {
		reader.desired[object.ID] = object
	}
	collections := collect(in)
	results := parallel.Each(ctx, limit, collections, reader.collection)
	var sightings []Sighting
	var remaining []single
	for i, result := range results {
		sightings = append(sightings, result.sightings...)
		if result.oneByOne {
			remaining = append(remaining, singles(collections[i])...)
		}
	}
	sightings = append(sightings, parallel.Each(ctx, limit, remaining, reader.object)...)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("observing the cluster: %w", err)
	}
	confirmGone(ctx, client, in, sightings)
	if err := record(in, sightings); err != nil {
		return err
	}
	return readAutoscalers(ctx, client, in, scalables(sightings))
}

// confirmGone confirms that the kinds without a resource are no longer served, before it treats
// their objects in the inventory as gone. Desired objects are written again in any case.
func confirmGone(ctx context.Context, client *tenant.Client, in *plan.Input, sightings []Sighting) {
	if !slices.ContainsFunc(sightings, func(s Sighting) bool { return s.Unserved }) {
		return
	}
	desired := map[inventory.ID]bool{}
	for _, object := range in.Desired {
		desired[object.ID] = true
	}
	asked := map[schema.GroupKind]error{}
	for _, s := range sightings {
		if !s.Unserved || desired[s.id] || !in.Previous.Has(s.id) {
			continue
		}
		kind := s.id.GroupKind()
		err, done := asked[kind]
		if !done {
			err = client.Gone(ctx, kind, tenant.RefTo(s.id, in.Kinds[kind].Resource))
			asked[kind] = err
		}
		noteUnknown(in, s.id, err)
	}
}

// record sorts sightings into the input; only failed reads are errors. Where the plan only
// keeps what is applied, a failed read concerns its own object alone, unless every read
// failed.
func record(in *plan.Input, sightings []Sighting) error {
	var errs []error
	for _, s := range sightings {
		switch {
		case s.Error == nil && s.Live != nil:
			in.Live[s.id] = *s.Live
		case s.free:
			in.Free[s.id] = true
		case apierrors.IsForbidden(s.Error):
			in.Unreadable[s.id] = objecterror.OneLine(s.Error.Error())
		case s.Error != nil:
			errs = append(errs, fmt.Errorf("observing %s: %w", s.id, s.Error))
		}
	}
	if in.Keeping && len(errs) < len(sightings) {
		for _, s := range sightings {
			if s.Error != nil {
				in.Unreadable[s.id] = objecterror.OneLine(s.Error.Error())
			}
		}
		return nil
	}
	return objecterror.Join(errs)
}

// collect groups the objects to read by collection, in a stable order.
func collect(in *plan.Input) []collection {
	groups := map[tenant.Ref]map[inventory.ID]struct{}{}
	discovered, stale := map[tenant.Ref]bool{}, map[tenant.Ref]bool{}
	add := func(id inventory.ID, kind plan.Kind, fresh bool) {
		ref := tenant.Ref{Resource: kind.Resource, Namespace: id.Namespace}
		if groups[ref] == nil {
			groups[ref] = map[inventory.ID]struct{}{}
		}
		groups[ref][id] = struct{}{}
		discovered[ref] = kind.Definition == ""
		stale[ref] = stale[ref] || !fresh
	}
	desired := map[inventory.ID]struct{}{}
	for _, object := range in.Desired {
		desired[object.ID] = struct{}{}
		add(object.ID, object.Kind, !in.Previous.Has(object.ID))
	}
	for _, hook := range in.Hooks {
		desired[hook.ID] = struct{}{}
		add(hook.ID, hook.Kind, false)
	}
	for _, entry := range in.Previous.Entries {
		kind, served := in.Kinds[entry.GroupKind()]
		if _, done := desired[entry.ID]; served && !done && kind.Namespaced == (entry.Namespace != "") {
			add(entry.ID, kind, false)
		}
	}
	var collections []collection
	for ref, ids := range groups {
		sorted := slices.SortedFunc(maps.Keys(ids), inventory.ID.Compare)
		collections = append(collections, collection{ref: ref, ids: sorted, discovered: discovered[ref], fresh: !stale[ref]})
	}
	slices.SortFunc(collections, func(a, b collection) int { return cmp.Compare(a.ref.String(), b.ref.String()) })
	return collections
}

// liveReader reads as the tenant, on behalf of an owner.
type liveReader struct {
	client   *tenant.Client
	owner    inventory.Owner
	desired  map[inventory.ID]plan.Object
	previous inventory.Inventory
}

type collectionResult struct {
	sightings []Sighting
	oneByOne  bool // the objects have to be read one by one
}

// collection reads one collection: from a list that deployments of one ServiceAccount share while they are planned at the same time,
// if it shows that no object of the collection exists, or by a LIST.
func (r liveReader) collection(ctx context.Context, c collection) collectionResult {
	if c.fresh && c.discovered && len(c.ids) <= mostShared {
		if sightings := c.free(r.client.Listed(ctx, c.ref)); sightings != nil {
			return collectionResult{sightings: sightings}
		}
	}
	return r.list(ctx, c)
}

// list lists one collection, or says that its objects are better read one
// by one: a single object, too many foreign objects, or no permission to list.
func (r liveReader) list(ctx context.Context, c collection) collectionResult {
	if len(c.ids) == 1 {
		return collectionResult{oneByOne: true}
	}
	wanted := make(map[string]inventory.ID, len(c.ids))
	for _, id := range c.ids {
		wanted[id.Name] = id
	}
	result := collectionResult{sightings: make([]Sighting, 0, len(c.ids))}
	options := metav1.ListOptions{Limit: tenant.PageSize}
	for {
		page, err := r.client.ListMetadata(ctx, c.ref, options)
		switch {
		case apierrors.IsNotFound(err):
			return r.unserved(c)
		case apierrors.IsForbidden(err), apierrors.IsResourceExpired(err), apierrors.IsMethodNotSupported(err):
			return collectionResult{oneByOne: true}
		case err != nil:
			return c.failed(err)
		}
		for i := range page.Items {
			if id, ours := wanted[page.Items[i].Name]; ours {
				result.sightings = append(result.sightings, r.seen(id, &page.Items[i]))
			}
		}
		if page.Continue == "" {
			return result
		}
		if rest := page.RemainingItemCount; rest != nil && *rest > int64(crowd*len(c.ids)) {
			return collectionResult{oneByOne: true}
		}
		options.Continue = page.Continue
	}
}

// free are the sightings if no object of the collection exists by a shared list; nil if that is not known, or one may exist.
func (c collection) free(names *listed.Names) []Sighting {
	if names == nil {
		return nil
	}
	sightings := make([]Sighting, 0, len(c.ids))
	for _, id := range c.ids {
		if !names.Lack(id.Name) {
			return nil
		}
		sightings = append(sightings, Sighting{id: id, free: true})
	}
	return sightings
}

// failed is the result for the objects of a collection that could not be listed.
func (c collection) failed(err error) collectionResult {
	result := collectionResult{}
	for _, id := range c.ids {
		result.sightings = append(result.sightings, Sighting{id: id, Error: err})
	}
	return result
}

// unserved: the kind is not served, or not at the moment. Discovery is out of date when it
// reported the kind.
func (r liveReader) unserved(c collection) collectionResult {
	if c.discovered {
		r.client.Kinds().Forget()
	}
	result := collectionResult{}
	for _, id := range c.ids {
		result.sightings = append(result.sightings, Sighting{id: id, Unserved: true})
	}
	return result
}

func (r liveReader) seen(id inventory.ID, object metav1.Object) Sighting {
	live := ownership.LiveOf(object, r.owner)
	seen := Sighting{id: id, Live: &live}
	if desired, found := r.desired[id]; found {
		entry, _ := r.previous.Get(id)
		seen.scalable = scalableIn(desired, entry, live, object, r.owner)
	}
	return seen
}

// single is an object that is read by a GET.
type single struct {
	id  inventory.ID
	ref tenant.Ref
}

func singles(c collection) []single {
	list := make([]single, 0, len(c.ids))
	for _, id := range c.ids {
		list = append(list, single{id: id, ref: tenant.RefTo(id, c.ref.Resource)})
	}
	return list
}

// Object reads one object on behalf of an owner.
func Object(ctx context.Context, client *tenant.Client, owner inventory.Owner, id inventory.ID, ref tenant.Ref) Sighting {
	return liveReader{client: client, owner: owner}.object(ctx, single{id: id, ref: ref})
}

// object reads one object; what is not found does not exist.
func (r liveReader) object(ctx context.Context, s single) Sighting {
	object, err := r.client.Metadata(ctx, s.ref)
	if apierrors.IsNotFound(err) {
		return Sighting{id: s.id, Unserved: objecterror.NotServed(err)}
	}
	if err != nil {
		return Sighting{id: s.id, Error: err}
	}
	return r.seen(s.id, object)
}
