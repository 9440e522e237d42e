// SPDX-License-Identifier: Apache-2.0

// Package clock notices that the clock was set, or that the machine slept: for how long something was observed is not known then.
package clock

import (
	"sync"
	"time"
)

// most is how much the clock may be corrected between two looks.
const most = 10 * time.Second

// Clock tells since when a process observes by the present clock. The zero value is ready for use.
type Clock struct {
	// Passed is the time that has passed since any moment; that of the monotonic clock by default, which results of time.Now have.
	Passed func() time.Duration

	mu          sync.Mutex
	began, last time.Time
	passed      time.Duration
}

// Began is when it was first called, or, if the clock has jumped since, when that was noticed. It is called with the result of time.Now.
func (c *Clock) Began(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	shown, passed := now.Round(0).Sub(c.last.Round(0)), now.Sub(c.last) // Round removes the monotonic clock
	if c.Passed != nil {
		passed, c.passed = c.Passed()-c.passed, c.Passed()
	}
	if jump := shown - passed; c.began.IsZero() || jump.Abs() > most {
		c.began = now
	}
	c.last = now
	return c.began
}
