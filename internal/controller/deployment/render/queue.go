// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// ErrPending means that the conversion waits or runs. The object is queued again when it has ended, or when its turn has
// come.
var ErrPending = errors.New("the conversion is under way")

// errFlooded means that the unread results of other conversions use all the memory for them.
var errFlooded = errors.New("too many conversions ended at once: it is tried again")

const (
	patience = time.Second // by default
	// brief is how long most conversions take at most, and how long a reconcile waits for its turn to begin one.
	brief = 200 * time.Millisecond
	// perNamespace is how many conversions of one namespace run or wait for a worker process.
	perNamespace = 2
	// mostUnread bounds the encoded objects that no reconcile has read yet, in bytes.
	mostUnread = 96 << 20
)

// Queue holds the running conversions, at most one for each object.
type Queue struct {
	// Turns of the objects that wait for a conversion.
	Turns *pipeline.Turns
	// Patience is how long a reconcile waits for the conversion that it starts; most take a fraction of it.
	Patience time.Duration
	wake     func(types.NamespacedName)

	mu      sync.Mutex
	pending map[types.NamespacedName]*pending
	unread  int64
}

// pending is a conversion that was started.
type pending struct {
	about  string
	cancel context.CancelCauseFunc
	done   chan struct{} // closed at the end; the fields below are constant then
	result *jobs.Converted
	err    error
	size   int64
	// awaited: the reconcile that started it still waits for it, so it need not be woken.
	awaited bool
	began   time.Time
}

// ended tells whether the conversion has ended.
func (p *pending) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// NewQueue returns a queue that calls wake when a conversion has ended and no reconcile waits for it any more.
func NewQueue(wake func(types.NamespacedName)) *Queue {
	return &Queue{Turns: pipeline.NewTurns(perNamespace), Patience: patience, wake: wake, pending: map[types.NamespacedName]*pending{}}
}

// Convert converts the input that about identifies. Only the reconcile that starts a conversion waits for it, for at most
// Patience; ErrPending means that it continues. A later call with the same about takes the result. A call with another about
// returns ErrPending until the earlier conversion has ended. If that exceeded a limit, its error is returned, so that a user
// who changes the input all the time sees it. end is called once the conversion has ended, or at once if none is started.
func (q *Queue) Convert(ctx context.Context, key types.NamespacedName, about string, convert func(context.Context) (*jobs.Converted, error), end func()) (*jobs.Converted, error) {
	q.mu.Lock()
	if earlier := q.pending[key]; earlier != nil {
		q.mu.Unlock()
		end()
		return q.take(key, earlier, about)
	}
	q.mu.Unlock()
	done, ok := q.Turns.TakeWithin(ctx, key, q.forTurn(key.Namespace))
	if !ok {
		end()
		return nil, ErrPending
	}
	begun := q.begin(ctx, key, about, convert, func() { end(); done() })
	timer := time.NewTimer(q.Patience)
	defer timer.Stop()
	select {
	case <-begun.done:
		return q.take(key, begun, about)
	case <-timer.C:
	case <-ctx.Done(): // the next reconcile takes the result
	}
	if q.leave(begun) {
		return q.take(key, begun, about)
	}
	return nil, ErrPending
}

// forTurn is how long a reconcile waits for its turn: briefly if the conversions of its namespace are brief. Otherwise, and
// mostly where one takes long on purpose, it ends and holds no place meanwhile.
func (q *Queue) forTurn(namespace string) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, p := range q.pending {
		if key.Namespace == namespace && !p.ended() && time.Since(p.began) > brief {
			return 0
		}
	}
	return brief
}

// leave records that no reconcile waits for a conversion any more, and returns whether it ended meanwhile.
func (q *Queue) leave(p *pending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	p.awaited = false
	return p.ended()
}

func (q *Queue) begin(ctx context.Context, key types.NamespacedName, about string, convert func(context.Context) (*jobs.Converted, error), end func()) *pending {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx)) // it outlives the reconcile; the pool bounds it
	p := &pending{about: about, cancel: cancel, done: make(chan struct{}), awaited: true, began: time.Now()}
	q.mu.Lock()
	q.pending[key] = p
	q.mu.Unlock()
	go func() {
		defer cancel(nil)
		result, err := convert(ctx)
		end()
		q.ended(key, p, result, err)
	}()
	return p
}

// ended keeps the result until a reconcile takes it, and wakes the object unless a reconcile waits for it:
// otherwise each reconcile with a conversion would cause another one, endlessly if it fails.
func (q *Queue) ended(key types.NamespacedName, p *pending, result *jobs.Converted, err error) {
	q.mu.Lock()
	p.result, p.err = result, err
	if result != nil {
		p.size = result.Size()
	}
	if q.unread+p.size > mostUnread && q.unread > 0 {
		p.result = nil
		p.err = errFlooded
		p.size = 0
	}
	q.unread += p.size
	awaited := p.awaited
	close(p.done)
	q.mu.Unlock()
	if !awaited {
		q.wake(key)
	}
}

// take returns the result of an ended conversion, once.
func (q *Queue) take(key types.NamespacedName, p *pending, about string) (*jobs.Converted, error) {
	if !p.ended() {
		return nil, ErrPending
	}
	q.remove(key, p)
	if p.about == about || isLimit(p.err) {
		return p.result, p.err
	}
	q.wake(key) // to convert the current input
	return nil, ErrPending
}

func (q *Queue) remove(key types.NamespacedName, p *pending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pending[key] == p {
		delete(q.pending, key)
		q.unread -= p.size
	}
}

// Leave releases the turn that an object waits for, or was promised.
func (q *Queue) Leave(key types.NamespacedName) { q.Turns.Drop(key) }

// End cancels the conversion of an object, if one runs, and drops its result.
func (q *Queue) End(key types.NamespacedName) {
	q.mu.Lock()
	p := q.pending[key]
	q.mu.Unlock()
	if p == nil {
		return
	}
	p.cancel(errNotWanted)
	go func() {
		<-p.done
		q.remove(key, p)
	}()
}

var errNotWanted = errors.New("the deployment is deleted or suspended")

// Pending is how many conversions are running, or have results that were not taken yet.
func (q *Queue) Pending() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.pending)
}
