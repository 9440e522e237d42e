// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view/rollouts"
)

// statusOptions are the flags of rollout status.
type statusOptions struct {
	output  printer.Output
	watch   bool
	wait    bool
	timeout time.Duration
}

func statusCommand(a *kit.App) *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Show the waves of a BundleRollout, what it waits for, and what happens next",
		Long: `Shows how many clusters of each wave have the newest revision, which failed or cannot be reached, what the rollout waits
for, and what happens next. It reads the BundleRollout only; rollout clusters lists all clusters.

With -w it goes on until the newest revision is complete: on a terminal it is drawn in place, elsewhere it writes a line
for each change. With --wait it also ends when the rollout stands still: it waits for a user, an approval or a window.

Signs: ✓ complete, … open, ✗ failed, ! unreachable or rebuilt, · not begun.

Exit codes:

    0    the newest revision has completed all waves
    1    it has not
    2    failed: not found, no access
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# How far is it?
satchel rollout status cert-manager -n fleet

# Watch it until it is complete
satchel rollout status cert-manager -n fleet -w

# In a pipeline: wait for the end, at most two hours
satchel rollout status cert-manager -n fleet --wait --timeout 2h`),
		ValidArgsFunction: a.CompleteOne(kit.Rollouts),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kit.OneRollout(cmd, args)
			switch {
			case err != nil:
				return err
			case (o.watch || o.wait) && o.output != printer.OutputText:
				return kit.UsageError(cmd, "-w and --wait write for people: leave -o %s out", o.output)
			case o.timeout < 0:
				return kit.UsageError(cmd, "--timeout is a time, such as 2h")
			case o.timeout > 0 && !o.watch && !o.wait:
				return kit.UsageError(cmd, "--timeout is for -w and --wait")
			}
			if o.watch || o.wait {
				return follow(cmd.Context(), a, o, t)
			}
			return Status(cmd.Context(), a, o.output, t)
		},
	}
	a.OutputFlag(cmd, &o.output, printer.OutputText, printer.OutputJSON, printer.OutputYAML)
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Go on until the newest revision is complete.")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "Go on until it is complete, or until it waits for a user, an approval or a window.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "How long to go on; without it: for ever.")
	return cmd
}

// Status prints how far a rollout is. It returns kit.ErrNo if it is not complete.
func Status(ctx context.Context, a *kit.App, o printer.Output, t kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	found, err := c.Rollout(ctx, t)
	if err != nil {
		return err
	}
	s := rollouts.New(found, a.Now())
	if o == printer.OutputText {
		fmt.Fprint(a.Streams.Out, PrintStatus(s, printer.StyleFor(a.Streams.Out), a.Now(), a.Name))
	} else if err := printer.PrintValue(a.Streams.Out, o, s); err != nil {
		return err
	}
	return answer(s)
}

// answer is the exit code of what was seen.
func answer(s rollouts.Status) error {
	if s.Outcome == rollouts.Complete {
		return nil
	}
	return kit.ErrNo
}
