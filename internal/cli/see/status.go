// SPDX-License-Identifier: Apache-2.0

package see

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
)

// StatusCommand returns the command status.
func StatusCommand(a *kit.App) *cobra.Command {
	var o printer.Output
	cmd := &cobra.Command{
		Use:     "status NAME",
		GroupID: kit.GroupSee,
		Short:   "Show the progress of a BundleDeployment, and where it is stuck",
		Long: `Shows the pipeline of a BundleDeployment from its source to health. The first failed step has the whole message and what
to do about it; the end says what happens next without user action.

Signs: ✓ done, … in progress, ✗ failed, · waits for the steps before it.

Exit codes:

    0    Ready
    1    not Ready
    2    failed: not found, no access
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Where is it stuck?
satchel status podinfo -n demo

# For a script: is it Ready?
satchel status podinfo >/dev/null && echo ready

# The first failing step
satchel status podinfo -o json | jq .problem`),
		ValidArgsFunction: a.CompleteOne(kit.Deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kit.OneTarget(cmd, args)
			if err != nil {
				return err
			}
			if t.Kind.Name != kit.Deployments.Name {
				return kit.UsageError(cmd, "status shows BundleDeployments; for a source: %s get source %s -o yaml", a.Name, t.Name)
			}
			return status(cmd.Context(), a, o, t)
		},
	}
	a.OutputFlag(cmd, &o, printer.OutputText, printer.OutputJSON, printer.OutputYAML)
	return cmd
}

func status(ctx context.Context, a *kit.App, o printer.Output, t kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	p, err := c.ReadPipeline(ctx, t, a)
	if err != nil {
		return err
	}
	if o == printer.OutputText {
		fmt.Fprint(a.Streams.Out, PrintPipeline(p, printer.StyleFor(a.Streams.Out), a.Now()))
	} else if err := printer.PrintValue(a.Streams.Out, o, p); err != nil {
		return err
	}
	if !p.UpToDate {
		return kit.ErrNo
	}
	return nil
}
