// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"time"
)

// The pause between two reads is shortestPause, or, when a read took long, so much longer
// that reads take a fifth of the time.
const (
	ShortestPause = 2 * time.Second
	PauseFactor   = 4
)

// Added are the lines of after that before lacks.
func Added(before, after []string) []string {
	known := map[string]bool{}
	for _, line := range before {
		known[line] = true
	}
	var lines []string
	for _, line := range after {
		if !known[line] {
			lines = append(lines, line)
		}
	}
	return lines
}

// Pause waits, or ends with the cause of ctx.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
