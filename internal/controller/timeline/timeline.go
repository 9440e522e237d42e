// SPDX-License-Identifier: Apache-2.0

// Package timeline has the time by which the controllers decide ([Guard.Now]), and detects that the API server's storage went back in time, as when etcd is
// restored from a backup, and makes clients list everything again: a watch would be silent
// until the resource versions of the storage have caught up with the known ones.
//
// At rest it costs no request: the storage cannot be replaced without ending the watches of the API server, so that the revision
// is read only after a watch ended early or a request failed (ADR 51).
package timeline

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

const (
	// lookEvery is the interval of reading the current revision of the storage after a disturbance, by one LIST of
	// the metadata of at most one object.
	lookEvery = 2 * time.Second
	// lookFor is how long it is read again and again after a disturbance: other API servers may follow.
	lookFor = time.Minute
	// lookAnyway is the interval without any disturbance, for proxies that keep watches open although the API server is gone.
	lookAnyway = 15 * time.Minute
	// longestLook bounds one of these requests.
	longestLook = 10 * time.Second
	// unsettled is how long caches are bypassed after the storage went back in time: they have
	// listed again by then.
	unsettled = 30 * time.Second
)

// Guard watches the revision of the storage. A nil one never detects anything.
type Guard struct {
	reader    client.Reader
	now       func() time.Time
	passed    func() time.Duration // since the guard was made, by the monotonic clock
	every     time.Duration        // lookEvery; tests look sooner
	disturbed chan struct{}        // signals that a watch ended early, or a request failed
	served    served

	mu      sync.Mutex
	highest uint64
	rewinds int       // how often the storage went back in time
	rewound time.Time // when it last did
	// again are the collections that were listed since then; nil if it never did.
	again   map[string]bool
	open    map[*stream]struct{} // watches
	handler []func()
}

// New returns a guard with the clock now.
func New(now func() time.Time) *Guard {
	began := time.Now()
	return &Guard{now: now, passed: func() time.Duration { return time.Since(began) }, every: lookEvery, disturbed: make(chan struct{}, 1), open: map[*stream]struct{}{}}
}

// OnRewind adds a function that is called after the storage went back in time: it should drop
// caches about objects, and queue all of them.
func (g *Guard) OnRewind(handle func()) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handler = append(g.handler, handle)
}

// Unsettled tells that the storage went back in time recently, so caches may be outdated: objects
// have to be read from the API server.
func (g *Guard) Unsettled() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rewinds > 0 && g.now().Sub(g.rewound) < unsettled
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: caches run without leading.
func (g *Guard) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It looks at the revision at first and after each disturbance, until lookFor has passed since the last
// one and a look has succeeded.
func (g *Guard) Start(ctx context.Context) error {
	ticker := time.NewTicker(g.every)
	defer ticker.Stop()
	until := g.now()
	for {
		err := g.look(ctx)
		if err != nil {
			ctrl.Log.V(1).Info("cannot read the revision of the storage", "error", err.Error())
		}
		if err == nil && !g.now().Before(until) {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(lookAnyway):
			case <-g.disturbed:
				until = g.now().Add(lookFor)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C: // disturbances meanwhile do not lead to more looks
		}
		if g.wasDisturbed() {
			until = g.now().Add(lookFor)
		}
	}
}

// disturb has the revision read now, and for some time.
func (g *Guard) disturb() {
	select {
	case g.disturbed <- struct{}{}:
	default: // it is known already
	}
}

// wasDisturbed tells whether there was a disturbance since it was last asked.
func (g *Guard) wasDisturbed() bool {
	select {
	case <-g.disturbed:
		return true
	default:
		return false
	}
}

// look reads the current revision: a LIST has the revision of the storage, whatever is listed,
// and without a resourceVersion is never older than an earlier answer.
func (g *Guard) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.BundleSourceKind + "List"))
	if err := g.reader.List(ctx, list, client.Limit(1)); err != nil {
		return fmt.Errorf("listing bundlesources: %w", err)
	}
	revision, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
	if err != nil {
		return nil // not a revision of etcd: nothing can be told from it
	}
	g.saw(revision)
	return nil
}

// saw records the current revision.
func (g *Guard) saw(revision uint64) {
	g.mu.Lock()
	was := g.highest
	g.highest = revision
	if revision >= was {
		g.mu.Unlock()
		return
	}
	g.rewinds++
	g.rewound, g.again = g.now(), map[string]bool{}
	ended := make([]*stream, 0, len(g.open))
	for s := range g.open {
		ended = append(ended, s)
	}
	handlers := g.handler
	g.mu.Unlock()
	ctrl.Log.Info("the storage of the API server went back in time, as after a restore from a backup: everything is read again",
		"revision", revision, "before", was, "watches", len(ended))
	for _, s := range ended {
		s.end()
	}
	for _, handle := range handlers {
		handle()
	}
}

// Source queues all objects of a kind, as the API server lists them, after the storage went
// back in time.
func (g *Guard) Source(reader client.Reader, list func() client.ObjectList) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		if g == nil {
			return nil
		}
		g.OnRewind(func() {
			objects := list()
			if err := reader.List(ctx, objects); err != nil {
				ctrl.Log.Error(err, "cannot queue all objects after the storage went back in time: each one is reconciled at its interval")
				return
			}
			_ = apimeta.EachListItem(objects, func(o runtime.Object) error {
				if object, ok := o.(client.Object); ok {
					queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
				}
				return nil
			}) // the function does not fail
		})
		return nil
	})
}

// guarded is a manager with a guard.
type guarded struct {
	ctrl.Manager
	guard *Guard
}

// With adds a guard to a manager, which runs it.
func With(mgr ctrl.Manager, guard *Guard) (ctrl.Manager, error) {
	guard.reader = mgr.GetAPIReader()
	return guarded{mgr, guard}, mgr.Add(guard)
}

// Of is the guard of a manager; nil if it has none.
func Of(mgr ctrl.Manager) *Guard {
	if found, ok := mgr.(guarded); ok {
		return found.guard
	}
	return nil
}

// Wrap passes the requests of a client through the guard.
func (g *Guard) Wrap(config *rest.Config) {
	if server, _, err := rest.DefaultServerUrlFor(config); err == nil {
		g.served.host = server.Host
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{next: next, guard: g} })
}
