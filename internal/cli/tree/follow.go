// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// followTree reads the tree repeatedly, and writes what changed, until ctx ends or the deployment is gone.
func followTree(ctx context.Context, a *kit.App, t kit.Target, x *kit.Explorer, last Tree) error {
	s := printer.StyleFor(a.Streams.Out)
	trouble, took := "", time.Duration(0)
	for {
		if err := kit.Pause(ctx, max(kit.ShortestPause, kit.PauseFactor*took)); err != nil {
			return err
		}
		began := time.Now()
		next, err := readTree(ctx, x, t)
		took = time.Since(began)
		var gone *kit.NotFoundError
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &gone):
			fmt.Fprintf(a.Streams.ErrOut, "The %s %s is gone.\n", t.Kind.Name, view.Inline(t.Name))
			return nil
		case err != nil:
			if text := a.Explain(err); text != trouble {
				trouble = text
				a.Note([]string{text + "; it is retried"})
			}
			continue
		}
		trouble = ""
		for _, c := range Happenings(last, next, a.Now()) {
			fmt.Fprintln(a.Streams.Out, c.Line(s))
		}
		a.NoteOmitted(kit.Added(last.Omitted, next.Omitted))
		last = next
	}
}
