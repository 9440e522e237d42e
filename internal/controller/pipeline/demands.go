// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"math"
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
	// betweenReconciles is the time after which an object regains one of them. The rate counts, and not the time since the
	// last answer: an edit that was answered late would make all later ones of a steady user late.
	betweenReconciles = time.Second
	// freeEvery is the time after which one more demand on an object is free of charge, after as many as are answered at once.
	freeEvery = 20 * time.Second
	// freeTime is the total time of reconciles of a namespace for such demands before they are spaced; then they get
	// 1/timeShare of the time. It is more than a user needs who edits a small bundle every second.
	freeTime  = 2 * time.Second
	timeShare = 5
	// MostCharged bounds the charged time of one demand: its reconciles may have waited for a slow upstream.
	MostCharged = 5 * time.Second
)

// Demands limits the rate of edits and reconcile requests (demands) of objects. The first demands on an object are answered at
// once. Later ones are answered once a second on average, together with those that came meanwhile, and all of a namespace
// together get a fifth of the time of one worker: so a tenant with constant demands takes little from the others, also with
// many objects.
type Demands struct {
	mu         sync.Mutex
	known      map[types.NamespacedName]*demand
	namespaces map[string]*debt
}

// demand is the last answered demand on an object.
type demand struct {
	what    string
	answers *rate.Limiter // of all demands
	free    *rate.Limiter // of those that are not charged
	charged bool
	begun   bool          // a reconcile has ended
	took    time.Duration // by its reconciles so far; of the last demand until the first one
	ahead   time.Duration // charged before the first reconcile
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
		last = &demand{
			answers: rate.NewLimiter(rate.Every(betweenReconciles), promptBurst), free: rate.NewLimiter(rate.Every(freeEvery), promptBurst),
		}
		q.known[key] = last
	}
	if last.what == what {
		return 0
	}
	pause := untilToken(last.answers, now)
	isFree := last.free.TokensAt(now) >= 1
	if of := q.namespaces[key.Namespace]; of != nil && !isFree {
		pause = max(pause, (of.left(now)-freeTime)*timeShare)
	}
	if pause > 0 {
		return pause
	}
	last.answers.AllowN(now, 1)
	last.charged = !last.free.AllowN(now, 1)
	last.what = what
	last.ahead = 0
	if last.charged {
		last.ahead = last.took
		q.charge(key.Namespace, last.ahead, now)
	}
	last.begun = false
	return 0
}

// untilToken is the time until a limiter that gives one token in betweenReconciles has one.
func untilToken(limiter *rate.Limiter, now time.Time) time.Duration {
	missing := 1 - limiter.TokensAt(now)
	return time.Duration(math.Ceil(max(missing, 0) * float64(betweenReconciles)))
}

// Took records the duration of a reconcile of an object, which may be one of several for the same demand: all of them are
// charged with no more than most.
func (q *Demands) Took(key types.NamespacedName, took, most time.Duration, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := q.known[key]
	if last == nil {
		return
	}
	if !last.begun {
		last.begun, last.took = true, 0
	}
	took = max(0, min(took, min(most, MostCharged)-last.took))
	last.took += took
	if last.charged {
		q.charge(key.Namespace, took-last.ahead, now)
	}
	last.ahead = 0
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
