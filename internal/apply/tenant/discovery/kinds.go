// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Kind describes how the API server serves a kind.
type Kind struct {
	Resource   schema.GroupVersionResource
	Namespaced bool
	Verbs      []string
}

// Listed is a kind with objects that can be listed, in its preferred version, and how it is served.
type Listed struct {
	schema.GroupVersionKind
	Served Kind
}

// NoKindError says that the cluster does not serve a kind, or not in that version.
type NoKindError struct {
	Kind   schema.GroupVersionKind
	Served []string // versions in which the kind is served
}

// Error implements error.
func (e *NoKindError) Error() string {
	return fmt.Sprintf("the cluster does not know kind %s of %s", e.Kind.Kind, e.Kind.GroupVersion())
}

// Cache caches what a cluster serves. It repeats discovery when it does not know a
// kind, at most once in the refresh period, and otherwise after maxAge. It is safe
// for concurrent use; cached answers are read without waiting for others.
type Cache struct {
	ask    func() (catalog, error)
	small  discovery.DiscoveryInterface // for one group; see Served
	period time.Duration
	now    func() time.Time

	asking sync.Mutex // held during discovery
	known  atomic.Pointer[catalog]
	stale  atomic.Bool

	absences absences
}

// maxAge is how long an answer of discovery is used when no kind is missing.
const maxAge = 10 * time.Minute

// catalog is one answer of discovery.
type catalog struct {
	asked  time.Time
	kinds  map[schema.GroupVersionKind]Kind
	served map[schema.GroupKind][]string // versions, the preferred one first
	failed map[string]error              // groups of which the server does not answer
	// versions are group/version and group/version/Kind of all that is served, sorted.
	versions []string
}

// Options bound what a Cache asks.
type Options struct {
	Timeout time.Duration // of one request
	Period  time.Duration // discovery is asked again at most this often
	Now     func() time.Time
}

// New makes a cache over the connection of a client.
func New(config *rest.Config, client *http.Client, o Options) (*Cache, error) {
	config = rest.CopyConfig(config)
	config.Timeout = o.Timeout // discovery takes no context
	bounded := *client
	bounded.Timeout = o.Timeout
	asking, err := discovery.NewDiscoveryClientForConfigAndClient(config, &bounded)
	if err != nil {
		return nil, fmt.Errorf("preparing discovery: %w", err)
	}
	return &Cache{
		ask:    func() (catalog, error) { return ask(asking) },
		small:  asking,
		period: o.Period,
		now:    o.Now,
	}, nil
}

// Find returns how a kind is served. A *NoKindError means for certain that it is not;
// any other error means that this is unknown at the moment.
func (k *Cache) Find(ctx context.Context, kind schema.GroupVersionKind) (Kind, error) {
	known, err := k.catalog(ctx, func(c *catalog) bool { _, found := c.kinds[kind]; return found })
	if err != nil {
		return Kind{}, err
	}
	if found, ok := known.kinds[kind]; ok {
		return found, nil
	}
	if err := known.failed[kind.Group]; err != nil {
		return Kind{}, fmt.Errorf("finding out about kind %s of %s: %w", kind.Kind, kind.GroupVersion(), err)
	}
	return Kind{}, &NoKindError{Kind: kind, Served: known.served[kind.GroupKind()]}
}

// Preferred is Find in the version that the API server prefers, for a kind of
// which only the group is known.
func (k *Cache) Preferred(ctx context.Context, kind schema.GroupKind) (Kind, error) {
	known, err := k.catalog(ctx, func(c *catalog) bool { return len(c.served[kind]) > 0 })
	if err != nil {
		return Kind{}, err
	}
	if versions := known.served[kind]; len(versions) > 0 {
		return known.kinds[kind.WithVersion(versions[0])], nil
	}
	if err := known.failed[kind.Group]; err != nil {
		return Kind{}, fmt.Errorf("finding out about kind %s: %w", kind, err)
	}
	return Kind{}, &NoKindError{Kind: kind.WithVersion("")}
}

// Namespaced returns all namespaced kinds that can be listed,
// each in its preferred version, sorted, including those that were served lately. It fails
// when the server of some group does not answer, or when the first answer of discovery is too
// recent to be reliable, for then the list may be incomplete.
func (k *Cache) Namespaced(ctx context.Context) ([]Listed, error) {
	known, err := k.young(ctx)
	if err != nil {
		return nil, err
	}
	for group, err := range known.failed {
		return nil, fmt.Errorf("listing the kinds of group %q: %w", group, err)
	}
	if !k.absences.settled(known) {
		return nil, errUnsettled
	}
	kinds := known.listable(func(kind Kind) bool { return kind.Namespaced })
	for kind, was := range k.absences.lately(known) {
		if was.kind.Namespaced && slices.Contains(was.kind.Verbs, "list") {
			kinds = append(kinds, Listed{GroupVersionKind: kind.WithVersion(was.version), Served: was.kind})
		}
	}
	sortListed(kinds)
	return kinds, nil
}

// errUnsettled says that the first answer of discovery is too recent.
var errUnsettled = errors.New("the API server was asked for its kinds only a moment ago, and may not have told all: it is asked again")

// IsUnsettled tells whether the first answer of discovery is too recent to be reliable.
func IsUnsettled(err error) bool { return errors.Is(err, errUnsettled) }

func sortListed(kinds []Listed) {
	slices.SortFunc(kinds, func(a, b Listed) int { return strings.Compare(a.String(), b.String()) })
}

// Listable returns all kinds that can be listed, each in its preferred version,
// sorted, and the groups with unknown kinds because their servers do not answer.
//
// A kind that was served a moment ago may be gone when it is listed: the answer is then not found.
func (k *Cache) Listable(ctx context.Context) (kinds []Listed, silent []string, err error) {
	known, err := k.young(ctx)
	if err != nil {
		return nil, nil, err
	}
	return known.listable(func(Kind) bool { return true }), slices.Sorted(maps.Keys(known.failed)), nil
}

// young returns what is served, by a recent answer of discovery.
func (k *Cache) young(ctx context.Context) (*catalog, error) {
	return k.catalog(ctx, func(c *catalog) bool { return k.now().Sub(c.asked) < k.period })
}

func (c *catalog) listable(wanted func(Kind) bool) []Listed {
	var kinds []Listed
	for kind, versions := range c.served {
		preferred := kind.WithVersion(versions[0])
		if found := c.kinds[preferred]; wanted(found) && slices.Contains(found.Verbs, "list") {
			kinds = append(kinds, Listed{GroupVersionKind: preferred, Served: found})
		}
	}
	sortListed(kinds)
	return kinds
}

// Forget says that the cached answer may be outdated: CRDs were just established, or
// a kind that should be served was not found. An unknown kind is then looked up soon,
// everything else when the refresh period is over.
func (k *Cache) Forget() { k.stale.Store(true) }

// catalog returns the cached one when it satisfies, else repeats discovery, if it is due.
// A caller that the cached one satisfies does not wait for a discovery in progress.
func (k *Cache) catalog(ctx context.Context, satisfies func(*catalog) bool) (*catalog, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if known := k.known.Load(); known != nil && !k.due(known, satisfies(known)) {
		return known, nil
	}
	if known := k.known.Load(); known == nil || !satisfies(known) {
		k.asking.Lock()
	} else if !k.asking.TryLock() {
		return known, nil // discovery is in progress; the cached answer is good enough
	}
	defer k.asking.Unlock()
	if known := k.known.Load(); known != nil && !k.due(known, satisfies(known)) {
		return known, nil // another caller has updated it
	}
	asked := k.now()
	k.stale.Store(false)
	fresh, err := k.ask()
	if err != nil {
		k.stale.Store(true)
		return nil, fmt.Errorf("asking the API server for its kinds: %w", err)
	}
	fresh.asked = asked
	k.absences.take(&fresh)
	k.known.Store(&fresh)
	return &fresh, nil
}

// due tells whether it is time to repeat discovery.
//
//	satisfied  stale   when the period is over
//	satisfied  fresh   after maxAge
//	not        stale   after a fifth of the period: all callers share it, any of them may call Forget
//	not        fresh   when the period is over
func (k *Cache) due(known *catalog, satisfied bool) bool {
	age, stale := k.now().Sub(known.asked), k.stale.Load()
	switch {
	case satisfied && !stale:
		return age >= maxAge
	case !satisfied && stale:
		return age >= k.period/5
	}
	return age >= k.period
}

// ask reads everything that is served; a group is recorded as failed, not as gone, when its server
// does not answer.
func ask(client discovery.DiscoveryInterface) (catalog, error) {
	groups, lists, err := discovery.ServerGroupsAndResources(client)
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		return catalog{}, err
	}
	answer := catalog{
		kinds:  map[schema.GroupVersionKind]Kind{},
		served: map[schema.GroupKind][]string{},
		failed: map[string]error{},
	}
	if partial != nil {
		for version, failure := range partial.Groups {
			answer.failed[version.Group] = failure
		}
	}
	byVersion := map[string]*metav1.APIResourceList{}
	for _, list := range lists {
		byVersion[list.GroupVersion] = list
	}
	answer.versions = versionsOf(groups, lists)
	for _, group := range groups {
		for _, version := range preferredFirst(group) {
			if list := byVersion[version.GroupVersion]; list != nil {
				answer.add(group.Name, version.Version, list.APIResources)
			}
		}
	}
	return answer, nil
}

func preferredFirst(group *metav1.APIGroup) []metav1.GroupVersionForDiscovery {
	versions := slices.Clone(group.Versions)
	slices.SortStableFunc(versions, func(a, b metav1.GroupVersionForDiscovery) int {
		return boolRank(a == group.PreferredVersion) - boolRank(b == group.PreferredVersion)
	})
	return versions
}

func boolRank(first bool) int {
	if first {
		return 0
	}
	return 1
}

func (c catalog) add(group, version string, resources []metav1.APIResource) {
	for i := range resources {
		resource := &resources[i]
		if strings.Contains(resource.Name, "/") {
			continue // a subresource
		}
		kind := schema.GroupVersionKind{Group: group, Version: version, Kind: resource.Kind}
		if _, found := c.kinds[kind]; found {
			continue
		}
		c.kinds[kind] = Kind{
			Resource:   schema.GroupVersionResource{Group: group, Version: version, Resource: resource.Name},
			Namespaced: resource.Namespaced,
			Verbs:      resource.Verbs,
		}
		c.served[kind.GroupKind()] = append(c.served[kind.GroupKind()], version)
	}
}

// IsNoKind tells whether the error means for certain that a kind is not served.
func IsNoKind(err error) bool {
	var none *NoKindError
	return errors.As(err, &none)
}
