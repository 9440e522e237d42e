// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// attack lets namespaces run bombs, several at a time, until the context ends. It returns
// a counter of bombs that ran until their limit.
func attack(ctx context.Context, p *Pool, attackers, each int) (*atomic.Int64, *sync.WaitGroup) {
	var exploded atomic.Int64
	var done sync.WaitGroup
	for i := range attackers * each {
		done.Go(func() {
			request := Request{Namespace: fmt.Sprintf("attacker-%d", i%attackers), Kind: "spin"}
			for ctx.Err() == nil {
				_, err := p.Run(ctx, request)
				var budget *BudgetError
				switch {
				case errors.As(err, &budget):
					select {
					case <-ctx.Done():
					case <-time.After(100 * time.Millisecond): // a controller waits longer
					}
				case limitOf(err) == "cpu 2s":
					exploded.Add(1)
				}
			}
		})
	}
	return &exploded, &done
}

// TestFair lets namespaces queue bombs while another one runs small jobs: all of these
// together wait for at most a few bombs.
func TestFair(t *testing.T) {
	for name, tc := range map[string]struct {
		attackers, each, most int
		budget                time.Duration
	}{
		// The first bomb of each namespace may take a worker; after that one worker is free of them.
		"one attacker":                        {1, 20, 1, 20 * time.Second},
		"three attackers":                     {3, 20, 4, 20 * time.Second},
		"three attackers with a small budget": {3, 20, 4, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			o := testOptions()
			o.NamespaceCPU, o.NamespaceWindow = tc.budget, time.Hour
			p := newPool(t, o)
			ctx, cancel := context.WithCancel(t.Context())
			exploded, done := attack(ctx, p, tc.attackers, tc.each)
			defer done.Wait()
			defer cancel()
			eventually(t, "the attack begins", func() bool { return p.count(func() int { return len(p.using) }) > 0 })
			var waits []time.Duration
			for range 20 {
				began := time.Now()
				if _, err := p.Run(t.Context(), Request{Namespace: "victim", Kind: "echo"}); err != nil {
					t.Fatal(err)
				}
				waits = append(waits, time.Since(began))
			}
			if n := exploded.Load(); n > int64(tc.most) {
				t.Errorf("20 small jobs waited for %d bombs, more than %d", n, tc.most)
			}
			slices.Sort(waits)
			t.Logf("the victim's jobs took %v (median), %v (p95), %v (most)", waits[10], waits[18], waits[19])
		})
	}
}

// TestPreempt ends one of two long jobs when a small one waits, and tries it again.
func TestPreempt(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	o := testOptions()
	o.CPU, o.Metrics = 20*time.Second, metrics
	o.NamespaceCPU, o.NamespaceWindow = 20*time.Second, time.Hour
	p := newPool(t, o)
	var long sync.WaitGroup
	for _, namespace := range []string{"a", "b"} {
		long.Go(func() {
			if _, err := p.Run(t.Context(), Request{Namespace: namespace, Kind: "spin", Data: []byte("5s")}); err != nil {
				t.Errorf("the long job of %s: %v", namespace, err)
			}
		})
	}
	eventually(t, "both long jobs run", func() bool { return p.count(func() int { return len(p.using) }) == 2 })
	if _, err := p.Run(t.Context(), Request{Namespace: "c", Kind: "echo"}); err != nil {
		t.Error(err)
	}
	eventually(t, "a job was preempted", func() bool { return testutil.ToFloat64(metrics.jobs.WithLabelValues("spin", "preempted")) == 1 })
	if running := testutil.ToFloat64(gauge(t, registry, "satchel_worker_running_jobs")); running != 1 {
		t.Errorf("%v jobs run beside the one that waits for the worker of long ones", running)
	}
	long.Wait()
	if n := testutil.ToFloat64(metrics.jobs.WithLabelValues("spin", "done")); n != 2 {
		t.Errorf("%v long jobs were done", n)
	}
	if used := testutil.ToFloat64(metrics.cpu.WithLabelValues("a")); used <= 0 {
		t.Error("the CPU time of a namespace is not counted")
	}
	for _, name := range []string{"satchel_worker_processes", "satchel_worker_resident_bytes"} {
		if value := testutil.ToFloat64(gauge(t, registry, name)); value < 1 {
			t.Errorf("%s is %v", name, value)
		}
	}
}

// gauge reads a metric of the registry again as a collector of one value.
func gauge(t *testing.T, registry *prometheus.Registry, name string) prometheus.Collector {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "x"})
			g.Set(family.GetMetric()[0].GetGauge().GetValue())
			return g
		}
	}
	t.Fatalf("there is no metric %s", name)
	return nil
}
