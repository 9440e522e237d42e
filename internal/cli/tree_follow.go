// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The pause between two reads is shortestPause, or, when a read took long, so much longer
// that reads take a fifth of the time.
const (
	shortestPause = 2 * time.Second
	pauseFactor   = 4
)

// followTree reads the tree repeatedly, and writes what changed, until ctx ends or the deployment is gone.
func (a *app) followTree(ctx context.Context, t target, x *explorer, last tree) error {
	s := styleFor(a.streams.Out)
	trouble, took := "", time.Duration(0)
	for {
		if err := pause(ctx, max(shortestPause, pauseFactor*took)); err != nil {
			return err
		}
		began := time.Now()
		next, err := x.readTree(ctx, t)
		took = time.Since(began)
		var gone *notFoundError
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &gone):
			fmt.Fprintf(a.streams.ErrOut, "The %s %s is gone.\n", t.kind.name, inline(t.name))
			return nil
		case err != nil:
			if text := a.explain(err); text != trouble {
				trouble = text
				a.note([]string{text + "; it is retried"})
			}
			continue
		}
		trouble = ""
		for _, c := range happenings(last, next, a.now()) {
			fmt.Fprintln(a.streams.Out, c.line(s))
		}
		a.noteOmitted(added(last.Omitted, next.Omitted))
		last = next
	}
}

// added are the lines of after that before lacks.
func added(before, after []string) []string {
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

// pause waits, or ends with the cause of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
