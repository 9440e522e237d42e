// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"slices"
	"time"
)

// job is a request in the queue.
type job struct {
	request Request
	// turn receives one grant when the job may start, or is refused.
	turn chan grant
	// again marks the second attempt after a process crashed or was killed. It gets a fresh
	// process.
	again bool
	// alone marks the second attempt after the kernel killed a process, probably because
	// memory was short: no other job runs at the time.
	alone bool
	// heavy marks a job that counts as heavy, like those of namespaces that have used much CPU time.
	heavy bool
}

// grant lets a job start.
type grant struct {
	process *process   // nil: start one
	evicted []*process // end these first
	err     error      // the job must not start
}

// queue decides which job is next. One job of a namespace runs at a time. Namespaces that
// have used little CPU time recently come first, in turn; the others come in the order of
// their used CPU time, and leave one of several workers to the former. So a namespace
// delays others by at most one job, which ends or is preempted when it has used much.
type queue struct {
	workers int
	budgets *budgets
	waiting map[string][]*job
	running map[string]*job
	// places are the places of namespaces in the queue: a namespace joins at the end, and
	// moves to the end when one of its jobs was started.
	places map[string]uint64
	last   uint64
}

func newQueue(workers int, b *budgets) *queue {
	return &queue{
		workers: workers, budgets: b,
		waiting: map[string][]*job{}, running: map[string]*job{}, places: map[string]uint64{},
	}
}

// muchShare is the part of its CPU budget above which a namespace counts as heavy: half a second of a minute, more than most
// bundles need. It decides how long a small job may wait for large ones of two namespaces.
const muchShare = 120

// much is the CPU time above which a namespace, or a job, counts as heavy.
func (q *queue) much() time.Duration { return q.budgets.capacity / muchShare }

func (q *queue) isHeavy(j *job, now time.Time) bool {
	return j.heavy || q.much() > 0 && q.budgets.spent(j.request.Namespace, now) > q.much()
}

// heavyWorkers is how many workers heavy jobs may have.
func (q *queue) heavyWorkers() int { return max(q.workers-1, 1) }

func (q *queue) add(j *job, first bool) {
	namespace := j.request.Namespace
	if len(q.waiting[namespace]) == 0 {
		q.toEnd(namespace)
	}
	if first {
		q.waiting[namespace] = slices.Insert(q.waiting[namespace], 0, j)
	} else {
		q.waiting[namespace] = append(q.waiting[namespace], j)
	}
}

func (q *queue) toEnd(namespace string) {
	q.last++
	q.places[namespace] = q.last
}

// remove removes a waiting job. It returns whether the job waited.
func (q *queue) remove(j *job) bool {
	namespace := j.request.Namespace
	i := slices.Index(q.waiting[namespace], j)
	if i < 0 {
		return false
	}
	q.waiting[namespace] = slices.Delete(q.waiting[namespace], i, i+1)
	if len(q.waiting[namespace]) == 0 {
		delete(q.waiting, namespace)
		delete(q.places, namespace)
	}
	return true
}

// next starts the next job, and returns it, or nil if none may start.
func (q *queue) next(now time.Time) *job {
	heavies, alone := q.occupied()
	if alone || len(q.running) >= q.workers {
		return nil
	}
	var best *job
	var bestRank rank
	for namespace, jobs := range q.waiting {
		if q.running[namespace] != nil {
			continue
		}
		r := q.rankOf(jobs[0], now)
		if r.heavy && !r.alone && heavies >= q.heavyWorkers() {
			continue
		}
		if best == nil || r.before(bestRank) {
			best, bestRank = jobs[0], r
		}
	}
	if best == nil || best.alone && len(q.running) > 0 {
		return nil
	}
	q.start(best, bestRank.heavy)
	return best
}

// occupied returns how many heavy jobs run, and whether one of the running jobs has to be alone.
func (q *queue) occupied() (heavies int, alone bool) {
	for _, j := range q.running {
		alone = alone || j.alone
		if j.heavy {
			heavies++
		}
	}
	return heavies, alone
}

func (q *queue) start(j *job, heavy bool) {
	namespace := j.request.Namespace
	j.heavy = heavy
	q.running[namespace] = j
	q.remove(j)
	if len(q.waiting[namespace]) > 0 {
		q.toEnd(namespace)
	}
}

// done ends a job that was started.
func (q *queue) done(j *job) { delete(q.running, j.request.Namespace) }

// rank orders waiting jobs.
type rank struct {
	alone bool
	heavy bool
	spent time.Duration
	place uint64
}

func (q *queue) rankOf(j *job, now time.Time) rank {
	namespace := j.request.Namespace
	r := rank{alone: j.alone, heavy: q.isHeavy(j, now), place: q.places[namespace]}
	if r.heavy {
		r.spent = q.budgets.spent(namespace, now)
	}
	return r
}

func (r rank) before(other rank) bool {
	switch {
	case r.alone != other.alone:
		return r.alone
	case r.heavy != other.heavy:
		return other.heavy
	case r.spent != other.spent:
		return r.spent < other.spent
	default:
		return r.place < other.place
	}
}

// lightWaits tells whether a job of a light namespace without a running job waits.
func (q *queue) lightWaits(now time.Time) bool {
	for namespace, jobs := range q.waiting {
		if q.running[namespace] == nil && !q.isHeavy(jobs[0], now) {
			return true
		}
	}
	return false
}
