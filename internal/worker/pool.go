// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/satchel-dev/satchel/internal/worker/protocol"
)

const (
	// maxJobs is after how many jobs a process is replaced.
	maxJobs = 1000
	// idleTime is how long a process waits for another job of its namespace.
	idleTime = time.Minute
	// preemptEvery is how often running jobs are checked while others wait.
	preemptEvery = 50 * time.Millisecond
)

// Pool gives jobs to worker processes.
type Pool struct {
	options Options
	null    *os.File
	start   func(*os.ProcAttr) (*os.Process, error) // the starter's; tests replace it
	now     func() time.Time
	kills   *killCounter // by the kernel

	// attempts counts calls of Run that may hold a process, and starts of a spare.
	attempts sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	budgets  *budgets
	queue    *queue
	idle     []*process // each has served a namespace; the longest idle one first
	spare    *process   // has served none
	starting bool       // a start of the spare is running
	using    map[*job]*use
	ticking  bool        // a check of running jobs is planned
	trimmer  *time.Timer // set while a check of idle processes is planned
}

// use is a process that does a job.
type use struct {
	process *process
	began   time.Time
	before  time.Duration // its CPU time before the job
}

// New checks that the memory of all workers fits into the container's limit beside the
// GOMEMLIMIT of this process, and starts the spare process if there is one.
func New(o Options) (*Pool, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := checkMemory(&o, containerMemory()); err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("preparing the start of worker processes: %w", err)
	}
	p := &Pool{
		options: o, null: null, now: time.Now, kills: newKillCounter(kernelKills),
		budgets: newBudgets(o.NamespaceCPU, o.NamespaceWindow), using: map[*job]*use{},
	}
	p.start = processStarter().start
	p.queue = newQueue(o.Workers, p.budgets)
	o.Metrics.observe(p)
	p.mu.Lock()
	p.startSpare()
	p.mu.Unlock()
	return p, nil
}

// Run does a job and returns the handler's result. Its errors are LimitError, BudgetError,
// CrashError, JobError, ErrUnavailable, ErrClosed and that of the context. If the context
// ends while the job runs, its process is killed.
func (p *Pool) Run(ctx context.Context, r Request) ([]byte, error) {
	if len(r.Kind) == 0 || len(r.Kind) > protocol.MaxKind {
		return nil, fmt.Errorf("the kind %q of a job is empty or longer than %d bytes", r.Kind, protocol.MaxKind)
	}
	if err := checkFile(r.File); err != nil {
		return nil, err
	}
	j := &job{request: r, turn: make(chan grant, 1)}
	for first := false; ; first = true {
		got, err := p.attempt(ctx, j, first)
		if err != nil {
			return nil, err
		}
		p.options.Metrics.ended(r.Kind, got.end)
		if got.end == endPreempt {
			j.heavy = true
			continue
		}
		if (got.end == endKernel || got.end == endCrash) && !j.again {
			j.again, j.alone = true, got.end == endKernel
			continue
		}
		return p.answer(ctx, r.Kind, got)
	}
}

// answer translates the end of the last attempt to a result or an error.
func (p *Pool) answer(ctx context.Context, kind string, got result) ([]byte, error) {
	switch got.end {
	case endDone:
		return got.data, nil
	case endError:
		return nil, jobError(kind, got.data)
	case endCanceled:
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		return nil, ErrClosed
	case endKernel:
		return nil, limitError(endMemory, &p.options)
	case endCPU, endMemory, endOutput, endTime:
		return nil, limitError(got.end, &p.options)
	case endStream:
		return nil, got.err
	case endStart:
		return nil, fmt.Errorf("%w: the process could not start a thread", ErrUnavailable)
	default:
		return nil, &CrashError{End: got.detail}
	}
}

// attempt waits for the job's turn and gives it to a process.
func (p *Pool) attempt(ctx context.Context, j *job, first bool) (result, error) {
	if err := p.enqueue(j, first); err != nil {
		return result{}, err
	}
	defer p.attempts.Done()
	var g grant
	select {
	case g = <-j.turn:
	case <-ctx.Done():
		if p.withdraw(j) {
			return result{}, context.Cause(ctx)
		}
		g = <-j.turn
	}
	if g.err != nil {
		return result{}, g.err
	}
	for _, w := range g.evicted {
		w.dispose()
	}
	w, err := p.processFor(ctx, j, g)
	if err != nil {
		p.release(j, nil, 0)
		return result{}, err
	}
	var start time.Duration // of a process that has served no namespace
	if w.jobs == 0 {
		start = cpuTime(w.handle.Pid)
	}
	began := p.use(j, w)
	got := w.do(ctx, j.request, &p.options)
	if got.end == endKernel && !p.kills.rose() {
		got.end = endCrash // another process killed it: the job did not cause that
	}
	p.options.Metrics.took(j.request, got.cpu, p.now().Sub(began))
	p.release(j, w, start+got.cpu)
	return got, nil
}

func (p *Pool) enqueue(j *job, first bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	p.attempts.Add(1)
	p.queue.add(j, first)
	p.dispatch()
	return nil
}

// withdraw removes a job that has not started.
func (p *Pool) withdraw(j *job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.queue.remove(j) {
		return false
	}
	p.dispatch()
	return true
}

// processFor returns the process of the grant, or starts one.
func (p *Pool) processFor(ctx context.Context, j *job, g grant) (*process, error) {
	if err := context.Cause(ctx); err != nil {
		if g.process != nil {
			g.process.dispose()
		}
		return nil, err
	}
	w := g.process
	if w != nil && w.hasEnded() {
		w.dispose()
		w = nil
	}
	if w == nil {
		var err error
		if w, err = p.begin(); err != nil {
			return nil, err
		}
	}
	w.namespace = j.request.Namespace
	return w, nil
}

// begin starts a process and waits until it is confined.
func (p *Pool) begin() (*process, error) {
	w, err := p.launch()
	if err == nil {
		err = w.greet(p.options.limits())
	}
	p.options.Metrics.started(err)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return w, nil
}

func (o *Options) limits() protocol.Limits {
	return protocol.Limits{Memory: uint64(o.Memory), Output: uint64(o.Output), CPU: uint64(math.Ceil(o.CPU.Seconds()))} //nolint:gosec // validate: positive
}

// use records that the process runs the job from now on.
func (p *Pool) use(j *job, w *process) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	began := p.now()
	p.using[j] = &use{process: w, began: began, before: cpuTime(w.handle.Pid)}
	if p.closed {
		w.kill(endCanceled)
	}
	return began
}

// release charges the namespace, keeps or ends the process, and lets the next job start.
func (p *Pool) release(j *job, w *process, cpu time.Duration) {
	keep := w != nil && w.isReusable(p.options.Memory)
	if w != nil && !keep {
		w.dispose() // before another process needs its memory
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.using, j)
	p.queue.done(j)
	p.budgets.charge(j.request.Namespace, cpu, p.now())
	if keep {
		w.idleSince = p.now()
		p.idle = append(p.idle, w)
	}
	p.planTrim()
	p.startSpare()
	p.dispatch()
}

// isReusable tells whether the process may do another job, and records its memory.
func (w *process) isReusable(limit int64) bool {
	mapped, _, own := memoryOf(w.handle.Pid)
	w.own = own
	return !w.hasEnded() && w.jobs < maxJobs && mapped < limit/4*3
}

// dispatch starts all jobs that may start, and refuses those of namespaces without CPU
// time. The caller holds mu.
func (p *Pool) dispatch() {
	now := p.now()
	for namespace, jobs := range p.queue.waiting {
		if wait := p.budgets.wait(namespace, now); wait > 0 {
			for _, j := range append([]*job(nil), jobs...) {
				p.queue.remove(j)
				j.turn <- grant{err: &BudgetError{Budget: p.options.NamespaceCPU, Window: p.options.NamespaceWindow, RetryAfter: wait}}
			}
		}
	}
	for j := p.queue.next(now); j != nil; j = p.queue.next(now) {
		j.turn <- p.grant(j, now)
	}
	p.tick()
}

// grant picks a process for a job: that of the namespace, or the spare one. Heavy jobs leave
// the spare one to the others. A second attempt gets a new process, since the cause that
// ended the first one may have ended the spare one too.
func (p *Pool) grant(j *job, now time.Time) grant {
	var g grant
	if !j.again {
		g.process = p.takeIdle(j.request.Namespace)
	}
	if !j.again && !j.heavy && g.process == nil {
		g.process, p.spare = p.spare, nil
		p.startSpare()
	}
	for p.idleAreTooMany() {
		g.evicted = append(g.evicted, p.evict(now))
	}
	return g
}

// idleAreTooMany tells whether idle processes need memory that running ones may take. They do not grow while they are idle.
func (p *Pool) idleAreTooMany() bool {
	room := int64(p.options.Workers-len(p.queue.running)) * p.options.Memory
	if p.options.Spare {
		room += idleMemory - spareMemory
	}
	for _, w := range p.idle {
		room -= w.own
	}
	return len(p.idle) > maxIdle || len(p.idle) > 0 && room < 0
}

// evict takes the idle process of the namespace that has used the most CPU time; of several, the one that was idle for longest.
func (p *Pool) evict(now time.Time) *process {
	most := slices.MaxFunc(p.idle, func(a, b *process) int {
		return cmp.Compare(p.budgets.spent(a.namespace, now), p.budgets.spent(b.namespace, now))
	})
	p.idle = slices.DeleteFunc(p.idle, func(w *process) bool { return w == most })
	return most
}

// takeIdle returns the idle process of a namespace, or nil.
func (p *Pool) takeIdle(namespace string) *process {
	for i, w := range p.idle {
		if w.namespace == namespace {
			p.idle = append(p.idle[:i:i], p.idle[i+1:]...)
			return w
		}
	}
	return nil
}

// startSpare starts the spare process unless there is one. The caller holds mu.
func (p *Pool) startSpare() {
	if !p.options.Spare || p.closed || p.spare != nil || p.starting {
		return
	}
	p.starting = true
	p.attempts.Add(1)
	go func() {
		defer p.attempts.Done()
		w, err := p.begin()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.starting = false
		if err == nil { // else the next job tries again, and reports the error
			p.spare = w
		}
	}()
}

// planTrim schedules trim. The caller holds mu.
func (p *Pool) planTrim() {
	if !p.closed && p.trimmer == nil && len(p.idle)+len(p.budgets.used) > 0 {
		p.trimmer = time.AfterFunc(idleTime, p.trim)
	}
}

// trim ends processes that were idle for long, and forgets namespaces with a full CPU
// budget.
func (p *Pool) trim() {
	p.mu.Lock()
	var kept, dropped []*process
	for _, w := range p.idle {
		if p.now().Sub(w.idleSince) < idleTime && !w.hasEnded() {
			kept = append(kept, w)
		} else {
			dropped = append(dropped, w)
		}
	}
	p.idle = kept
	p.options.Metrics.forget(p.budgets.forget(p.now()))
	p.trimmer = nil
	p.planTrim()
	p.mu.Unlock()
	for _, w := range dropped {
		w.dispose()
	}
}

// tick schedules a check for preemption if jobs wait.
func (p *Pool) tick() {
	if p.ticking || p.options.Workers < 2 || p.budgets.capacity == 0 || len(p.queue.waiting) == 0 || p.closed {
		return
	}
	p.ticking = true
	time.AfterFunc(preemptEvery, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ticking = false
		p.preempt()
		p.tick()
	})
}

// preempt ends a job if all running jobs have used much CPU time while a job of a light
// namespace waits. Jobs that were heavy at their start continue: they leave a worker to
// the others.
func (p *Pool) preempt() {
	if len(p.queue.running) < p.options.Workers || !p.queue.lightWaits(p.now()) {
		return
	}
	var candidate *use
	for j, u := range p.using {
		used := max(cpuTime(u.process.handle.Pid)-u.before, p.now().Sub(u.began)/4)
		if !j.heavy && used < p.queue.much() {
			return
		}
		if !j.heavy && !j.alone && (candidate == nil || u.began.After(candidate.began)) {
			candidate = u
		}
	}
	if candidate != nil && len(p.using) == p.options.Workers {
		candidate.process.kill(endPreempt)
	}
}

// Close ends all processes and waits for them and for calls of Run, which return ErrClosed.
func (p *Pool) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	for _, jobs := range p.queue.waiting {
		for _, j := range append([]*job(nil), jobs...) {
			p.queue.remove(j)
			j.turn <- grant{err: ErrClosed}
		}
	}
	for _, u := range p.using {
		u.process.kill(endCanceled)
	}
	p.mu.Unlock()
	p.attempts.Wait()

	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range append(p.idle, p.spare) {
		if w != nil {
			w.dispose()
		}
	}
	p.idle, p.spare = nil, nil
	if p.trimmer != nil {
		p.trimmer.Stop()
	}
	return p.null.Close()
}
