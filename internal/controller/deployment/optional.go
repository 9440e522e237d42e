// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

const (
	// kindsPause is how often it is looked for kinds that deployments wait for.
	kindsPause = 2 * time.Second
	// kindsTimeout bounds one question, and kindsAtOnce how many are asked at once: a
	// remote cluster that does not answer keeps no other waiting.
	kindsTimeout, kindsAtOnce = 5 * time.Second, 8
)

// kindWaits looks for the kinds that deployments wait for, and queues these when one is
// served: one small request of discovery a kind and cluster, however many deployments
// wait for it, and none while nobody does.
//
// A watch of CustomResourceDefinitions would tell sooner. But it takes a right to read
// them all, by the controller itself, which has no other one to objects of bundles;
// it knows nothing of kinds that an aggregated API server brings; and on a remote cluster
// nobody may have that right. Discovery is open to everybody who is logged in.
type kindWaits struct {
	mu    sync.Mutex
	waits map[types.NamespacedName]*kindWait
	some  chan struct{} // told that somebody waits
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// kindWait is what one deployment waits for, on its cluster.
type kindWait struct {
	on    *tenant.Kinds
	kinds []schema.GroupKind
	came  bool
}

func newKindWaits() *kindWaits {
	return &kindWaits{waits: map[types.NamespacedName]*kindWait{}, some: make(chan struct{}, 1)}
}

// set replaces what a deployment waits for; with no kinds it is forgotten.
func (w *kindWaits) set(key types.NamespacedName, on *tenant.Kinds, kinds []schema.GroupKind) {
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

// came tells whether one of the kinds that a deployment waits for is served since.
func (w *kindWaits) came(key types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waits[key] != nil && w.waits[key].came
}

// Source connects it with the queue of the controller, which has to watch it.
func (w *kindWaits) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue = queue
		return nil
	})
}

// Start implements manager.Runnable.
func (w *kindWaits) Start(ctx context.Context) error {
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
	on   *tenant.Kinds
	kind schema.GroupKind
}

// wanted are the questions to ask, each once.
func (w *kindWaits) wanted() []kindQuestion {
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

// look asks one question, and queues who waits for the answer.
func (w *kindWaits) look(ctx context.Context, q kindQuestion) {
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

// awaitKinds has the kinds looked for of which objects were left out.
func (r *Reconciler) awaitKinds(s *state, made plan.Plan) {
	var kinds []schema.GroupKind
	seen := map[schema.GroupKind]bool{}
	for _, id := range made.Skipped {
		if !seen[id.GroupKind()] {
			seen[id.GroupKind()] = true
			kinds = append(kinds, id.GroupKind())
		}
	}
	r.kinds.set(client.ObjectKeyFromObject(s.object), s.client.Kinds(), kinds)
}

// mostSkippedNamed is how many objects that are left out a message names.
const mostSkippedNamed = 5

// skippedText says what a plan leaves out, and until when; nothing when it does not.
func skippedText(skipped []inventory.ID) string {
	if len(skipped) == 0 {
		return ""
	}
	named, more := skipped, ""
	if len(named) > mostSkippedNamed {
		named, more = named[:mostSkippedNamed], fmt.Sprintf(" and %d more", len(skipped)-mostSkippedNamed)
	}
	return fmt.Sprintf("; %d of spec.optionalKinds left out until their kinds are served: %s%s", len(skipped), names(named), more)
}
