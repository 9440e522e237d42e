// SPDX-License-Identifier: Apache-2.0

package worker

import "time"

// budgets are the CPU budgets of namespaces, as token buckets: each has a capacity and
// is refilled evenly within the window. A job may use more than is left; the namespace
// then waits until that is refilled. Capacity zero means no limit.
type budgets struct {
	capacity, window time.Duration
	used             map[string]usage
}

// usage is the CPU time that a namespace had used at a time.
type usage struct {
	cpu time.Duration
	at  time.Time
}

func newBudgets(capacity, window time.Duration) *budgets {
	return &budgets{capacity: capacity, window: window, used: map[string]usage{}}
}

// spent is the used CPU time of a namespace that is not refilled yet.
func (b *budgets) spent(namespace string, now time.Time) time.Duration {
	u, found := b.used[namespace]
	if !found {
		return 0
	}
	back := time.Duration(float64(b.capacity) * float64(now.Sub(u.at)) / float64(b.window))
	return max(u.cpu-max(back, 0), 0)
}

// charge adds used CPU time to a namespace.
func (b *budgets) charge(namespace string, cpu time.Duration, now time.Time) {
	if b.capacity > 0 && cpu > 0 {
		b.used[namespace] = usage{cpu: b.spent(namespace, now) + cpu, at: now}
	}
}

// wait is how long the namespace has to wait; 0 if it has CPU time left.
func (b *budgets) wait(namespace string, now time.Time) time.Duration {
	spent := b.spent(namespace, now)
	if b.capacity == 0 || spent < b.capacity {
		return 0
	}
	// Until a 60th of the capacity is free.
	missing := spent - b.capacity + b.capacity/60
	return time.Duration(float64(missing) * float64(b.window) / float64(b.capacity))
}

// forget drops namespaces with a full budget and returns them.
func (b *budgets) forget(now time.Time) []string {
	var forgotten []string
	for namespace := range b.used {
		if b.spent(namespace, now) == 0 {
			delete(b.used, namespace)
			forgotten = append(forgotten, namespace)
		}
	}
	return forgotten
}
