// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics observes a Pool. A nil one observes nothing.
type Metrics struct {
	pool   atomic.Pointer[Pool]
	jobs   *prometheus.CounterVec
	cpu    *prometheus.CounterVec
	length *prometheus.HistogramVec
	starts *prometheus.CounterVec
}

// NewMetrics registers satchel_worker_… at the registry.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		jobs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "satchel_worker_jobs_total",
			Help: "Attempts to do a job in a worker process, by kind and end.",
		}, []string{"kind", "end"}),
		cpu: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "satchel_worker_cpu_seconds_total",
			Help: "CPU time that worker processes used for a namespace since its budget was last full.",
		}, []string{"namespace"}),
		length: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "satchel_worker_job_duration_seconds",
			Help:    "How long jobs ran in a worker process.",
			Buckets: prometheus.ExponentialBuckets(0.005, 4, 9),
		}, []string{"kind"}),
		starts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "satchel_worker_starts_total",
			Help: "Starts of worker processes.",
		}, []string{"result"}),
	}
	err := errors.Join(registry.Register(m.jobs), registry.Register(m.cpu), registry.Register(m.length), registry.Register(m.starts))
	for _, gauge := range []struct {
		name, help string
		value      func(*Pool) float64
	}{
		{"satchel_worker_running_jobs", "Jobs that run in worker processes.", func(p *Pool) float64 { return float64(len(p.using)) }},
		{"satchel_worker_waiting_jobs", "Jobs that wait for a worker process.", (*Pool).waitingJobs},
		{"satchel_worker_oldest_job_seconds", "How long the oldest running job has run.", (*Pool).oldestJob},
		{"satchel_worker_processes", "Worker processes.", func(p *Pool) float64 { return float64(len(p.processes())) }},
		{"satchel_worker_resident_bytes", "Memory of all worker processes.", (*Pool).residentBytes},
	} {
		err = errors.Join(err, registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: gauge.name, Help: gauge.help}, func() float64 {
			p := m.pool.Load()
			if p == nil {
				return 0
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			return gauge.value(p)
		})))
	}
	return m, err
}

// observe makes the gauges read the Pool.
func (m *Metrics) observe(p *Pool) {
	if m != nil {
		m.pool.Store(p)
	}
}

// ended counts an attempt.
func (m *Metrics) ended(kind string, e end) {
	if m != nil {
		m.jobs.WithLabelValues(kind, string(e)).Inc()
	}
}

// took observes the CPU time and duration of an attempt.
func (m *Metrics) took(r Request, cpu, wall time.Duration) {
	if m != nil {
		m.cpu.WithLabelValues(r.Namespace).Add(cpu.Seconds())
		m.length.WithLabelValues(r.Kind).Observe(wall.Seconds())
	}
}

// started counts a start.
func (m *Metrics) started(err error) {
	if m == nil {
		return
	}
	result := "ok"
	if err != nil {
		result = "error"
		if isShortage(err) {
			result = "shortage"
		}
	}
	m.starts.WithLabelValues(result).Inc()
}

// forget drops the metrics of namespaces.
func (m *Metrics) forget(namespaces []string) {
	if m == nil {
		return
	}
	for _, namespace := range namespaces {
		m.cpu.DeleteLabelValues(namespace)
	}
}

// The functions below are called with the pool locked.

func (p *Pool) waitingJobs() float64 {
	n := 0
	for _, jobs := range p.queue.waiting {
		n += len(jobs)
	}
	return float64(n)
}

func (p *Pool) oldestJob() float64 {
	var oldest time.Duration
	for _, u := range p.using {
		oldest = max(oldest, p.now().Sub(u.began))
	}
	return oldest.Seconds()
}

func (p *Pool) processes() []*process {
	all := append([]*process(nil), p.idle...)
	for _, u := range p.using {
		all = append(all, u.process)
	}
	if p.spare != nil {
		all = append(all, p.spare)
	}
	return all
}

func (p *Pool) residentBytes() float64 {
	var sum int64
	for _, w := range p.processes() {
		_, resident, _ := memoryOf(w.handle.Pid)
		sum += resident
	}
	return float64(sum)
}
