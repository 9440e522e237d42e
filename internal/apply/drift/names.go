// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Reading describes an object when a deployment read it.
type Reading struct {
	Ref tenant.Ref
	// State is its resource version, or Absent, or Hidden where the ServiceAccount may not get it.
	State string
}

// States of objects that have no resource version.
const (
	Absent = "absent"
	Hidden = "hidden"
)

// Names watches single objects by their names, as the accounts of the deployments that read them: an account that may watch
// no collection may be allowed to watch one object of it. Without that permission changes are not reported, except for an urgent
// reading: then the object's metadata is read every few seconds. It is safe for concurrent use. The options about collections
// have no meaning here; a quarter of the limit counts.
type Names struct {
	options Options
	ctx     context.Context //nolint:containedctx // of the watches, which outlive the calls that open them
	end     context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	objects map[nameKey]*named
	subs    map[Key]map[*named]*reader
	shares  map[tenant.Identity]int
	ended   bool
}

// pollPause is the interval of reads for an urgent object that cannot be watched.
const pollPause = 5 * time.Second

// nameKey names one object, as one account sees it.
type nameKey struct {
	identity tenant.Identity
	ref      tenant.Ref
}

// named is an object that deployments read. All of it but the key is guarded by the mutex of Names.
type named struct {
	key     nameKey
	client  *tenant.Client
	readers map[Key]*reader
	cancel  context.CancelFunc
	// counted: it has a watch, or may have one.
	counted bool
	state   string // the last known one; "" while unknown
	why     string // it cannot be watched; "" while it is, or may be
	kick    chan struct{}
}

// reader is a deployment that has read an object.
type reader struct {
	state    string
	reported string // the state that it was last woken for
	urgent   bool
}

// NewNames makes a watcher. It watches until Start's context has ended, or Close is called.
func NewNames(o Options) *Names {
	limit := o.Limit / share
	o = o.defaulted()
	o.Limit = limit
	ctx, end := context.WithCancel(context.Background())
	return &Names{
		options: o, ctx: ctx, end: end,
		objects: map[nameKey]*named{}, subs: map[Key]map[*named]*reader{}, shares: map[tenant.Identity]int{},
	}
}

// Start implements manager.Runnable: it closes the watcher when the process ends or loses its lease.
func (n *Names) Start(ctx context.Context) error {
	<-ctx.Done()
	n.Close()
	return nil
}

// Close ends all watches and waits until they have ended.
func (n *Names) Close() {
	n.mu.Lock()
	n.ended = true
	n.mu.Unlock()
	n.end()
	n.running.Wait()
}

// Set replaces the readings of a deployment, as the account of a client. While they are urgent, objects that cannot be watched
// are read every few seconds. The deployment is woken when an object is not as it was read.
func (n *Names) Set(key Key, client *tenant.Client, urgent bool, read []Reading) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return
	}
	before, now := n.subs[key], map[*named]*reader{}
	for _, reading := range read {
		object := n.object(nameKey{client.Identity(), reading.Ref}, client)
		known := object.readers[key]
		if known != nil && known.state == Hidden && reading.State != Hidden {
			object.again() // the permission may have been granted
		}
		object.readers[key] = &reader{state: reading.State, urgent: urgent}
		now[object] = object.readers[key]
		n.judge(object, key)
	}
	for object := range before {
		if now[object] == nil {
			n.leave(object, key)
		}
	}
	n.subs[key] = now
	if len(now) == 0 {
		delete(n.subs, key)
	}
}

// Drop forgets what a deployment has read.
func (n *Names) Drop(key Key) { n.Set(key, nil, false, nil) }

// Current tells that no object is known to differ from its reading.
func (n *Names) Current(key Key) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for object, reading := range n.subs[key] {
		if object.differs(reading) {
			return false
		}
	}
	return true
}

// Gaps returns the unwatched readings of a deployment, sorted.
func (n *Names) Gaps(key Key) []Gap {
	n.mu.Lock()
	defer n.mu.Unlock()
	var gaps []Gap
	for object := range n.subs[key] {
		if object.why != "" {
			ref := object.key.ref
			gaps = append(gaps, Gap{Resource: ref.Resource.GroupResource(), Namespace: ref.Namespace, Name: ref.Name, Why: object.why})
		}
	}
	slices.SortFunc(gaps, func(a, b Gap) int { return cmp.Compare(a.String(), b.String()) })
	return gaps
}

// object finds an object, or begins to watch it.
func (n *Names) object(key nameKey, client *tenant.Client) *named {
	found := n.objects[key]
	if found == nil {
		found = &named{key: key, readers: map[Key]*reader{}, kick: make(chan struct{}, 1)}
		n.objects[key] = found
		n.admit(found)
		ctx, cancel := context.WithCancel(n.ctx)
		found.client, found.cancel = client, cancel
		n.running.Go(func() { n.run(ctx, found) })
	}
	found.client = client
	return found
}

// admit starts the watch of an object, if the limit allows one more.
func (n *Names) admit(o *named) {
	running, identity := 0, o.key.identity
	for _, count := range n.shares {
		running += count
	}
	most := max(n.options.Limit/share, 1)
	switch {
	case n.options.Limit == 0:
		o.why = "this controller watches nothing (--watch-limit)"
	case running >= n.options.Limit:
		o.why = fmt.Sprintf("this controller has %d watches by name already, which is the limit (--watch-limit)", running)
	case n.shares[identity] >= most:
		o.why = fmt.Sprintf("service account %s has %d watches by name already, which is its share of --watch-limit", identity, most)
	default:
		n.shares[identity]++
		o.counted = true
	}
}

// leave removes a deployment from an object, and ends a watch that no deployment needs.
func (n *Names) leave(o *named, key Key) {
	delete(o.readers, key)
	if len(o.readers) > 0 {
		return
	}
	delete(n.objects, o.key)
	o.cancel()
	if !o.counted {
		return
	}
	if n.shares[o.key.identity]--; n.shares[o.key.identity] == 0 {
		delete(n.shares, o.key.identity)
	}
}

// differs tells that the state of an object is not the one that was read. A watch may be late, and show an earlier state.
func (o *named) differs(reading *reader) bool {
	seen, read := number(o.state), number(reading.state)
	return o.state != "" && o.state != reading.state && (seen == 0 || read == 0 || seen > read)
}

// judge wakes a deployment for an object that is not as it read it, once for each state.
func (n *Names) judge(o *named, key Key) {
	if reading := o.readers[key]; o.differs(reading) && reading.reported != o.state {
		reading.reported = o.state
		n.options.Wake(key, driftPause)
	}
}

// show records the state of an object.
func (n *Names) show(o *named, state string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o.state = state
	for key := range o.readers {
		n.judge(o, key)
	}
}

// watched records whether an object is watched, and wakes its deployments when that changes.
func (n *Names) watched(o *named, why string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if o.why == why {
		return
	}
	o.why = why
	for key := range o.readers {
		n.options.Wake(key, healthPause)
	}
}

// urgent tells that a deployment waits for an object.
func (n *Names) urgent(o *named) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, reading := range o.readers {
		if reading.urgent {
			return true
		}
	}
	return false
}

// again ends the pause before a watch is retried.
func (o *named) again() {
	select {
	case o.kick <- struct{}{}:
	default:
	}
}
