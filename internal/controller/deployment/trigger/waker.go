// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/satchel-dev/satchel/internal/apply/drift"
)

// Waker adds deployments to the queue of the controller, once that runs.
type Waker struct {
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]]
}

// Source hands the queue to the waker.
func (w *Waker) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.queue.Store(&queue)
		return nil
	})
}

// Wake queues a deployment after a pause.
func (w *Waker) Wake(key drift.Key, pause time.Duration) {
	if queue := w.queue.Load(); queue != nil {
		(*queue).AddAfter(reconcile.Request{NamespacedName: key}, pause)
	}
}
