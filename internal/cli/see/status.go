// SPDX-License-Identifier: Apache-2.0

package see

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/preview"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/rollout"
	"github.com/satchel-dev/satchel/internal/view"
)

// StatusCommand returns the command status.
func StatusCommand(a *kit.App) *cobra.Command {
	var o printer.Output
	cmd := &cobra.Command{
		Use:     "status [deployment|source|catalog|rollout] NAME",
		GroupID: kit.GroupSee,
		Short:   "Show the progress of a BundleDeployment, BundleSource or BundleCatalog, and where it is stuck",
		Long: `Shows the pipeline of a BundleDeployment from its source to health. The first failed step has the whole message and what
to do about it; the end says what happens next without user action.

Where the ServiceAccount lacks permissions, it also prints roles and bindings that grant them. They are computed as plan
does, with your own permissions and for the current revision of the source.

Of a BundleSource it shows what each reference resolved to, what is published, what went wrong, and what installs from it;
of a BundleCatalog what is served, and what is wrong in it; of a BundleRollout its waves, as rollout status does.

Signs: ✓ done, … in progress, ✗ failed, · waits for the steps before it.

Exit codes:

    0    Ready
    1    not Ready
    2    failed: not found, no access
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Where is it stuck?
satchel status podinfo -n demo

# Why is nothing fetched?
satchel status source podinfo -n demo

# For a script: is it Ready?
satchel status podinfo >/dev/null && echo ready

# The first failing step
satchel status podinfo -o json | jq .problem`),
		ValidArgsFunction: a.CompleteTargets(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kit.OneTarget(cmd, args)
			if err != nil {
				return err
			}
			switch t.Kind.Name {
			case kit.Sources.Name:
				return sourceStatus(cmd.Context(), a, o, t)
			case kit.Rollouts.Name:
				return rollout.Status(cmd.Context(), a, o, t)
			case kit.Catalogs.Name:
				return catalogStatus(cmd.Context(), a, o, t)
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
		printMissing(ctx, a, t, p)
	} else if err := printer.PrintValue(a.Streams.Out, o, p); err != nil {
		return err
	}
	if !p.UpToDate {
		return kit.ErrNo
	}
	return nil
}

// printMissing writes what grants the permissions that a refused plan lacks. The condition holds them in words only, so they
// are computed here.
func printMissing(ctx context.Context, a *kit.App, t kit.Target, p view.Pipeline) {
	if p.Problem == nil || !strings.Contains(p.Problem.Message, "service account") ||
		p.Problem.Reason != v1alpha1.ReasonPlanRefused && p.Problem.Reason != v1alpha1.ReasonInputNotFound {
		return
	}
	account, err := preview.Account(ctx, a, t, false)
	style := printer.StyleFor(a.Streams.Out)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		fmt.Fprintf(a.Streams.Out, "%s which permissions are missing cannot be computed here: %s\n", style.Paint(printer.Bold, "Note:"), view.OneLine(err.Error(), 0))
	case account.Unchecked != "":
		fmt.Fprintf(a.Streams.Out, "%s which permissions are missing cannot be computed here: %s\n", style.Paint(printer.Bold, "Note:"), view.OneLine(account.Unchecked, 0))
	default:
		fmt.Fprint(a.Streams.Out, preview.GrantsText(account, style, a.Name, p.Namespace, p.Name))
	}
}
