// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Options of a Hub. The zero value of each has the default given here.
type Options struct {
	// Limit is how many watches are open at once: 2000. No account has more than a
	// quarter of them, so that none exhausts the limit, and all other clusters together
	// have three quarters.
	Limit int
	// PerCluster is how many of them one other cluster may have: 20.
	PerCluster int
	// Wake reconciles a deployment after a pause. It must not block. Required.
	Wake func(Key, time.Duration)
	// Exists tells whether an account exists: the API server would accept watches of an account
	// that does not. It is called before each request.
	Exists func(context.Context, tenant.Identity) (bool, error)
	// Lifetime is the maximum time after which a watch is reopened, which is when the
	// API server checks the account's permissions again: 5 min, less up to a half. Watches of other clusters live
	// 12 times as long, as API servers keep them open by default: with a thousand clusters, to
	// reopen them would be most of the requests.
	Lifetime time.Duration
	// Retry is the pause after a first failure, which doubles up to Lifetime: 1 s.
	Retry time.Duration
	// Settle is how long an object is ignored that was written without a visible
	// change to our fields: mostly the watch shows by then that only its status changed: 3 s.
	Settle time.Duration
	// Refused is the first pause after a refusal, which doubles likewise: 10 s.
	Refused time.Duration
	// Relist is the minimum interval between the lists for new objects: 1 s.
	Relist time.Duration
}

const (
	defaultLimit      = 2000
	defaultPerCluster = 20
	defaultLifetime   = 5 * time.Minute
	// lifetimesOfRemote is how many times as long watches of other clusters live.
	lifetimesOfRemote = 12
	// share: one account may have 1/share of the limit.
	share = 4
	// driftPause collects events that happen at about the same time.
	driftPause = 30 * time.Millisecond
	// healthPause collects the changes of a status, which come in bursts.
	healthPause = 200 * time.Millisecond
)

func (o Options) defaulted() Options {
	o.Limit = cmp.Or(o.Limit, defaultLimit)
	o.PerCluster = cmp.Or(o.PerCluster, defaultPerCluster)
	o.Lifetime = cmp.Or(o.Lifetime, defaultLifetime)
	o.Settle = cmp.Or(o.Settle, 3*time.Second)
	o.Retry = cmp.Or(o.Retry, time.Second)
	o.Refused = cmp.Or(o.Refused, 10*time.Second)
	o.Relist = cmp.Or(o.Relist, time.Second)
	return o
}

// lifetime is after which time a watch as an account is reopened: not all of them at once.
func (o Options) lifetime(of tenant.Identity) time.Duration {
	longest := o.Lifetime
	if of.Remote() {
		longest *= lifetimesOfRemote
	}
	return longest - rand.N(longest/2) //nolint:gosec // spreads requests, and is no secret
}

// Hub holds the watches of a process. A nil Hub watches nothing. It is safe for
// concurrent use.
type Hub struct {
	options Options
	ctx     context.Context //nolint:containedctx // of the watches, which outlive the calls that open them
	end     context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	streams map[streamKey]*stream
	subs    map[Key]*subscriber
	shares  shares
	events  int64
	ended   bool
}

// New makes a hub. It watches until Start's context has ended, or Close is called.
func New(o Options) *Hub {
	ctx, end := context.WithCancel(context.Background())
	return &Hub{
		options: o.defaulted(), ctx: ctx, end: end,
		streams: map[streamKey]*stream{}, subs: map[Key]*subscriber{}, shares: shares{by: map[tenant.Identity]int{}},
	}
}

// Start implements manager.Runnable: it closes the hub when the process ends or
// loses its lease.
func (h *Hub) Start(ctx context.Context) error {
	<-ctx.Done()
	h.Close()
	return nil
}

// Close ends all watches and waits until they have ended.
func (h *Hub) Close() {
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.end()
	h.running.Wait()
}

// Begin returns what a deployment should read, and does not wake it before End.
func (h *Hub) Begin(key Key) (found Findings) {
	h.with(key, func(sub *subscriber) { found = sub.begin(time.Now()) })
	return found
}

// with is for a deployment that has a subscription. A hub that is nil has none.
func (h *Hub) with(key Key, do func(*subscriber)) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if sub := h.subs[key]; sub != nil {
		do(sub)
	}
}

func (s *subscriber) begin(now time.Time) Findings {
	s.busy, s.after = true, false
	found := Findings{}
	for item := range s.drifted {
		if now.Before(s.ignoredUntil(item.id(), item.want.compare(item.got))) {
			continue
		}
		item.reported = item.got.state()
		found.Drifted = append(found.Drifted, item.id())
	}
	for _, times := range []map[inventory.ID]time.Time{s.conflictUntil, s.settleUntil} {
		maps.DeleteFunc(times, func(_ inventory.ID, until time.Time) bool { return !now.Before(until) })
	}
	for item := range s.changed {
		item.shown = item.got.version
		found.Changed = append(found.Changed, item.id())
	}
	found.Gaps, found.Watched = s.coverage()
	slices.SortFunc(found.Drifted, inventory.ID.Compare)
	slices.SortFunc(found.Changed, inventory.ID.Compare)
	return found
}

// End lets a deployment be woken again, and wakes it for what happened since Begin.
func (h *Hub) End(key Key) { h.with(key, h.finished) }

func (h *Hub) finished(sub *subscriber) {
	sub.busy = false
	h.unmet(sub)
	for item := range sub.drifted {
		if h.judgeDrift(item) {
			return // woken
		}
	}
	for item := range sub.changed {
		sub.after = sub.after || item.got.version > item.shown
	}
	if sub.after {
		h.options.Wake(sub.key, healthPause)
	}
}

// Gaps returns the unwatched objects of a deployment, sorted.
func (h *Hub) Gaps(key Key) (gaps []Gap) {
	h.with(key, func(sub *subscriber) { gaps, _ = sub.coverage() })
	return gaps
}

// coverage returns which objects of a subscription cannot be watched, and whether all
// of them are watched at the moment.
func (s *subscriber) coverage() (gaps []Gap, all bool) {
	all = true
	for stream := range s.streams {
		if stream.why != "" {
			gaps = append(gaps, Gap{Resource: stream.key.resource.GroupResource(), Namespace: stream.key.namespace, Why: stream.why})
		}
		all = all && stream.open
	}
	slices.SortFunc(gaps, func(a, b Gap) int { return strings.Compare(a.String(), b.String()) })
	return gaps, all
}

// Set replaces the subscription of a deployment.
func (h *Hub) Set(key Key, s Subscription) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	sub := h.subscriber(key, s)
	sub.tentative = false
	for _, i := range sub.items {
		i.stale = true
	}
	var last *stream // mostly that of the next object, too
	for i := range s.Objects {
		o := &s.Objects[i]
		if last == nil || !last.holds(o) {
			last = h.stream(sub, s, o)
		}
		h.want(sub, last, o)
	}
	sub.drop(func(i *item) bool { return i.stale })
	for stream := range sub.streams {
		h.release(sub, stream)
	}
}

func (h *Hub) subscriber(key Key, s Subscription) *subscriber {
	sub := h.subs[key]
	if sub == nil {
		sub = &subscriber{
			key: key, manager: s.Owner.Manager(), streams: map[*stream]int{}, drifted: map[*item]struct{}{}, changed: map[*item]struct{}{},
			conflictUntil: map[inventory.ID]time.Time{}, settleUntil: map[inventory.ID]time.Time{},
		}
		h.subs[key] = sub
	}
	sub.drift, sub.driftResolved = s.Drift, s.DriftResolved
	return sub
}

// want records the state in which an object was left.
func (h *Hub) want(sub *subscriber, stream *stream, o *Object) {
	found := stream.find(o.Name, sub)
	if found == nil {
		found = h.add(sub, stream, o)
		stream.again() // earlier changes were not reported
	}
	found.stale = false
	found.update(o)
	found.expected = false
	h.judge(found)
}

// update records the state in which the object of an item was left.
func (i *item) update(o *Object) {
	version := max(i.want.since, number(o.Version))
	i.want, i.adopted = want{fields: o.Fields, seen: o.Seen, since: version, done: o.Done}, false
	i.health = o.Health
	i.meet()
	i.looked = max(i.looked, number(o.Looked))
}

// Update records the state in which a write or a read left subscribed objects.
func (h *Hub) Update(key Key, objects []Object) {
	h.with(key, func(sub *subscriber) {
		for i := range objects {
			h.updated(sub, &objects[i])
		}
	})
}

func (h *Hub) updated(sub *subscriber, o *Object) {
	for stream := range sub.streams {
		if stream.key.kind != o.GroupKind() || stream.key.namespace != o.Namespace {
			continue
		}
		if found := stream.find(o.Name, sub); found != nil {
			found.update(o)
			h.judge(found)
		}
	}
}

// Completed records that Jobs ran to their end: their deletion is no drift then, and
// their health is known.
func (h *Hub) Completed(key Key, jobs map[inventory.ID]bool) {
	if len(jobs) == 0 {
		return
	}
	h.items(key, func(i *item) {
		if jobs[i.id()] {
			i.want.done, i.health = true, false
			h.judge(i)
		}
	})
}

// Looked records the objects of a health check.
func (h *Hub) Looked(key Key, seen map[inventory.ID]health.Sight) {
	if len(seen) == 0 {
		return
	}
	h.items(key, func(i *item) {
		if !i.health {
			return
		}
		if sight, found := seen[i.id()]; found {
			i.looked = max(i.looked, number(sight.Version), i.got.versionIf(sight.Version == ""))
			h.judge(i)
		}
	})
}

// versionIf is the version of a sight if the version is the only information: the
// object was read and not found.
func (s sight) versionIf(missing bool) uint64 {
	if missing {
		return s.version
	}
	return 0
}

// items calls do for each item of a deployment.
func (h *Hub) items(key Key, do func(*item)) {
	h.with(key, func(sub *subscriber) {
		for _, i := range sub.items {
			do(i)
		}
	})
}

// IgnoreDrift ignores the drift of an object for a while; the deployment is
// woken afterwards, if the object still drifts. With onlyMoved a change of our
// fields is reported nevertheless.
func (h *Hub) IgnoreDrift(key Key, id inventory.ID, until time.Time, onlyMoved bool) {
	h.with(key, func(sub *subscriber) {
		if onlyMoved {
			sub.settleUntil[id] = until
		} else {
			sub.conflictUntil[id] = until
		}
	})
}

// Adopt returns the inventory with changes that are no drift: the UID and
// generation of objects of which another client wrote a subresource.
func (h *Hub) Adopt(key Key, listed inventory.Inventory) inventory.Inventory {
	var fresh []inventory.Entry
	h.items(key, func(i *item) {
		if !i.adopted {
			return // mostly all of them
		}
		if entry, found := listed.Get(i.id()); found && entry.Fields == i.want.fields {
			entry.Seen = i.want.seen
			fresh = append(fresh, entry)
		}
	})
	if len(fresh) == 0 {
		return listed
	}
	return listed.With(fresh...)
}

// Drop ends the subscription of a deployment, and the watches that no other deployment needs.
func (h *Hub) Drop(key Key) {
	h.with(key, func(sub *subscriber) {
		delete(h.subs, key)
		sub.drop(func(*item) bool { return true })
		for stream := range sub.streams {
			h.release(sub, stream)
		}
	})
}

// Figures of a hub, for metrics.
type Figures struct {
	// Open watches, and collections that cannot be watched.
	Open, Gaps int
	// Objects with a subscription.
	Objects int
	// Events about such objects since the start.
	Events int64
}

// Figures tells what the hub holds.
func (h *Hub) Figures() Figures {
	if h == nil {
		return Figures{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	figures := Figures{Events: h.events}
	for _, stream := range h.streams {
		if stream.open {
			figures.Open++
		}
		if stream.why != "" {
			figures.Gaps++
		}
	}
	for _, sub := range h.subs {
		figures.Objects += len(sub.items)
	}
	return figures
}

// streamKey identifies a shared watch.
type streamKey struct {
	target    string
	identity  tenant.Identity
	tenant    string // namespace of the deployments
	resource  schema.GroupVersionResource
	kind      schema.GroupKind
	namespace string
}
