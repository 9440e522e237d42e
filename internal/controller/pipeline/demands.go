// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// promptBurst is how many demands on an object are answered at once: as many as a person, or a pipeline that sets
	// several fields in sequence, makes.
	promptBurst = 5
	// promptEvery is the time after which an object regains one of them.
	promptEvery = 20 * time.Second
	// betweenReconciles is the minimal time between other demands on one object.
	betweenReconciles = time.Second
	// freeTime is the total time of reconciles of a namespace for such demands before they are spaced; then they get
	// 1/timeShare of the time. It is more than a user needs who edits a small bundle every second.
	freeTime  = 2 * time.Second
	timeShare = 5
	// mostCharged bounds the charged time of one reconcile, which may have waited for a slow upstream.
	mostCharged = 5 * time.Second
)

// Demands limits the rate of edits and reconcile requests (demands) of objects. The first demands on an object are answered at
// once. Later ones are answered at most once a second, together with those that came meanwhile, and all of a namespace
// together get a fifth of the time of one worker: so a tenant with constant demands takes little from the others, also with
// many objects.
type Demands struct {
	mu         sync.Mutex
	known      map[types.NamespacedName]*demand
	namespaces map[string]*debt
}

// demand is the last answered demand on an object.
type demand struct {
	what   string
	at     time.Time
	prompt *rate.Limiter
	spaced bool          // it was not one of the first
	took   time.Duration // by the last reconcile
	ahead  time.Duration // charged before the reconcile
}

// debt is the charged time of a namespace that is not paid off yet.
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

// PauseOf is how long an edit of an object, or a request to reconcile it, has to wait: the status observed a generation, and
// handled a request.
func (q *Demands) PauseOf(object client.Object, observed int64, handled string, now time.Time) time.Duration {
	requested := Requested(object)
	switch key := client.ObjectKeyFromObject(object); {
	case observed != object.GetGeneration():
		return q.Pause(key, "generation "+strconv.FormatInt(object.GetGeneration(), 10), now)
	case requested != "" && requested != handled:
		return q.Pause(key, "request "+requested, now)
	}
	return 0
}

// Pause is how long a demand has to wait; zero if it may be answered now, or was answered already.
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
	last.what = what
	last.at = now
	last.spaced = !prompt
	last.ahead = 0
	if last.spaced {
		last.ahead = last.took
		q.charge(key.Namespace, last.ahead, now)
	}
	return 0
}

// Took records the duration of a reconcile of an object, which may be one of several for the same demand.
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

// Drop forgets an object that is gone, but not the charged time, or a tenant could recreate the object to reset it.
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
