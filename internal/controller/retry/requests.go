// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// betweenReconciles is how often an object is reconciled because its user asks for it all the time.
const betweenReconciles = time.Second

// editBurst is how many edits of an object are reconciled at once before they are spaced: as many as a person, or a
// pipeline that sets one field after the other, makes.
const editBurst = 5

// Demands spaces what users demand of each object: the first demands are answered at once, and then at most one a second,
// which answers for all that came meanwhile.
type Demands struct {
	burst int

	mu    sync.Mutex
	known map[types.NamespacedName]*demand
}

type demand struct {
	answered string // the last one
	limiter  *rate.Limiter
}

// NewRequests spaces requests to reconcile: the first is answered at once.
func NewRequests() *Demands { return newDemands(1) }

// NewEdits spaces changes of spec: a few are answered at once.
func NewEdits() *Demands { return newDemands(editBurst) }

func newDemands(burst int) *Demands {
	return &Demands{burst: burst, known: map[types.NamespacedName]*demand{}}
}

// Pause is how long a demand that was not answered yet has to wait; zero when it is to be answered now, or is empty.
func (q *Demands) Pause(key types.NamespacedName, what string, now time.Time) time.Duration {
	if what == "" {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	last := q.known[key]
	if last == nil {
		last = &demand{limiter: rate.NewLimiter(rate.Every(betweenReconciles), q.burst)}
		q.known[key] = last
	}
	if last.answered == what {
		return 0
	}
	if !last.limiter.AllowN(now, 1) {
		return min(betweenReconciles, time.Duration((1-last.limiter.TokensAt(now))*float64(betweenReconciles))+time.Millisecond)
	}
	last.answered = what
	return 0
}

// Drop forgets an object that is gone.
func (q *Demands) Drop(key types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.known, key)
}
