// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/tenant/discovery"
)

const (
	// kindsPause is the interval of checks for kinds that deployments wait for.
	kindsPause = 2 * time.Second
	// kindsTimeout bounds one discovery request, and kindsAtOnce how many run at once:
	// a remote cluster that does not answer does not delay the others.
	kindsTimeout, kindsAtOnce = 5 * time.Second, 8
)

// Kinds checks for the kinds that deployments wait for, and queues the deployments
// when one is served: one small discovery request for each kind and cluster, however
// many deployments wait for it, and none while none does.
//
// A watch of CustomResourceDefinitions would be faster. But the controller itself would
// need permission to read all CRDs, and it has no other permission on objects of bundles;
// such a watch does not cover kinds of aggregated API servers; and on a remote cluster
// that permission may be missing. Every authenticated user may use discovery.
type Kinds struct {
	mu    sync.Mutex
	waits map[types.NamespacedName]*kindWait
	some  chan struct{} // signals that a deployment waits
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// kindWait is what one deployment waits for, on its cluster.
type kindWait struct {
	on    *discovery.Cache
	kinds []schema.GroupKind
	came  bool
}

// NewKinds returns an empty list of waits.
func NewKinds() *Kinds {
	return &Kinds{waits: map[types.NamespacedName]*kindWait{}, some: make(chan struct{}, 1)}
}

// Set replaces the kinds that a deployment waits for; with no kinds it is forgotten.
func (w *Kinds) Set(key types.NamespacedName, on *discovery.Cache, kinds []schema.GroupKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(kinds) == 0 {
		delete(w.waits, key)
		return
	}
	w.waits[key] = &kindWait{on: on, kinds: kinds}
	select {
	case w.some <- struct{}{}:
	default:
	}
}

// Came tells whether one of the kinds that a deployment waits for is served now.
func (w *Kinds) Came(key types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waits[key] != nil && w.waits[key].came
}

// Source connects it to the queue of the controller.
func (w *Kinds) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue = queue
		return nil
	})
}

// Start implements manager.Runnable.
func (w *Kinds) Start(ctx context.Context) error {
	pause := time.NewTicker(kindsPause)
	defer pause.Stop()
	for {
		asked := w.wanted()
		if len(asked) == 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-w.some:
				continue
			}
		}
		parallel.Each(ctx, kindsAtOnce, asked, func(ctx context.Context, q kindQuestion) struct{} {
			w.look(ctx, q)
			return struct{}{}
		})
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
	}
}

// kindQuestion is about one kind on one cluster.
type kindQuestion struct {
	on   *discovery.Cache
	kind schema.GroupKind
}

// wanted are the distinct questions to ask.
func (w *Kinds) wanted() []kindQuestion {
	w.mu.Lock()
	defer w.mu.Unlock()
	var questions []kindQuestion
	seen := map[kindQuestion]bool{}
	for _, wait := range w.waits {
		for _, kind := range wait.kinds {
			if q := (kindQuestion{wait.on, kind}); !wait.came && !seen[q] {
				seen[q] = true
				questions = append(questions, q)
			}
		}
	}
	return questions
}

// look asks one question, and queues the deployments that wait for the kind.
func (w *Kinds) look(ctx context.Context, q kindQuestion) {
	ctx, cancel := context.WithTimeout(ctx, kindsTimeout)
	defer cancel()
	served, err := q.on.Served(ctx, q.kind)
	if err != nil && ctx.Err() == nil {
		ctrl.LoggerFrom(ctx).V(1).Info("cannot look for a kind", "kind", q.kind.String(), "error", err.Error())
	}
	if !served {
		return
	}
	q.on.Forget()
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, wait := range w.waits {
		for _, kind := range wait.kinds {
			if kind != q.kind || wait.on != q.on || wait.came {
				continue
			}
			wait.came = true
			if w.queue != nil {
				w.queue.Add(reconcile.Request{NamespacedName: key})
			}
		}
	}
}
