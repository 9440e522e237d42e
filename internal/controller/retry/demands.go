// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// promptBurst is how many demands on an object are answered at once: as many as a person, or a pipeline that sets one
	// field after the other, makes.
	promptBurst = 3
	// promptEvery is after how long an object has one of them again.
	promptEvery = 20 * time.Second
	// betweenReconciles is how often other demands on one object are answered at most.
	betweenReconciles = time.Second
	// freeTime is how long the reconciles of a namespace for such demands may take together before they are spaced; then they
	// get the part 1/timeShare of the time. It is more than what a user takes who edits a small bundle every second.
	freeTime  = 2 * time.Second
	timeShare = 5
	// mostCharged bounds what one reconcile counts: it may have waited for a slow upstream.
	mostCharged = 5 * time.Second
)

// Demands spaces what users demand of objects, by editing them or by requesting a reconcile. The first demands on an object
// are answered at once. Others are answered once a second at most, for all that came meanwhile, and all of a namespace together
// get a fifth of the time of one worker: so a tenant who demands all the time takes little from the others, also with
// many objects.
type Demands struct {
	mu         sync.Mutex
	known      map[types.NamespacedName]*demand
	namespaces map[string]*debt
}

// demand is the last one on an object that was answered.
type demand struct {
	what   string
	at     time.Time
	prompt *rate.Limiter
	spaced bool          // it was not one of the first
	took   time.Duration // by the last reconcile
	ahead  time.Duration // charged before the reconcile
}

// debt is the time that reconciles of a namespace took and that did not come back yet.
type debt struct {
	owed time.Duration
	at   time.Time
}

func (d *debt) add(took time.Duration, now time.Time) {
	d.owed, d.at = max(d.left(now)+took, 0), now
}

func (d *debt) left(now time.Time) time.Duration {
	return max(d.owed-now.Sub(d.at)/timeShare, 0)
}

// NewDemands returns Demands that know no object.
func NewDemands() *Demands {
	return &Demands{known: map[types.NamespacedName]*demand{}, namespaces: map[string]*debt{}}
}

// Pause is how long a demand has to wait; zero when it is to be answered now, or was answered already.
func (q *Demands) Pause(key types.NamespacedName, what string, now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := q.known[key]
	if last == nil {
		last = &demand{prompt: rate.NewLimiter(rate.Every(promptEvery), promptBurst)}
		q.known[key] = last
	}
	if last.what == what {
		return 0
	}
	prompt := last.prompt.AllowN(now, 1)
	if !prompt {
		pause := last.at.Add(betweenReconciles).Sub(now)
		if of := q.namespaces[key.Namespace]; of != nil {
			pause = max(pause, (of.left(now)-freeTime)*timeShare)
		}
		if pause > 0 {
			return pause
		}
	}
	last.what, last.at, last.spaced, last.ahead = what, now, !prompt, 0
	if last.spaced {
		last.ahead = last.took
		q.charge(key.Namespace, last.ahead, now)
	}
	return 0
}

// Took notes how long a reconcile of an object took, which may be one of several for the same demand.
func (q *Demands) Took(key types.NamespacedName, took time.Duration, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := q.known[key]
	if last == nil {
		return
	}
	took = min(took, mostCharged)
	if last.spaced {
		q.charge(key.Namespace, took-last.ahead, now)
	}
	last.took, last.ahead = took, 0
}

func (q *Demands) charge(namespace string, took time.Duration, now time.Time) {
	of := q.namespaces[namespace]
	if of == nil {
		of = &debt{}
		q.namespaces[namespace] = of
	}
	of.add(took, now)
}

// Drop forgets an object that is gone, but not what its reconciles took: it would be created anew.
func (q *Demands) Drop(key types.NamespacedName, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.known, key)
	for namespace, of := range q.namespaces {
		if of.left(now) == 0 {
			delete(q.namespaces, namespace)
		}
	}
}
