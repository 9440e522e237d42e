// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// RetryCommand returns the command retry.
func RetryCommand(a *kit.App) *cobra.Command {
	o := ReconcileOptions{Wait: true}
	cmd := &cobra.Command{
		Use:     "retry NAME",
		GroupID: kit.GroupAct,
		Short:   "Retry a BundleDeployment that failed, was rejected or is stalled",
		Long: `Retries a BundleDeployment that failed now, with all of its retries: a revision that remediation rejected is installed
again, and a stalled deployment is reconciled as if it were new. If it is blocked by its source, the source is fetched
again first. A deployment that is Ready is not changed; use reconcile for it.

Exit codes:

    0    Ready, after the retry or without one (with --wait=false: requested)
    1    retried, and not Ready
    2    failed: not found, no access, suspended, not handled within --timeout
    130  interrupted by Ctrl-C (the controller goes on)`,
		Example: a.Example(`
# After an outage of the registry
satchel retry podinfo

# Try a revision again that was rolled back
satchel retry podinfo --timeout 10m`),
		ValidArgsFunction: a.CompleteOne(kit.Deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kit.OneTarget(cmd, args)
			if err != nil {
				return err
			}
			if t.Kind.Name != kit.Deployments.Name {
				return kit.UsageError(cmd, "retry is about BundleDeployments; for a source: %s reconcile %s", a.Name, t.Word())
			}
			return retry(cmd.Context(), a, o, t)
		},
	}
	cmd.Flags().BoolVar(&o.Wait, "wait", true, "Wait for the outcome.")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 5*time.Minute, "How long to wait for the outcome.")
	return cmd
}

func retry(ctx context.Context, a *kit.App, o ReconcileOptions, t kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	found, err := c.Get(ctx, t)
	if err != nil {
		return err
	}
	if err := refuseSuspended(a, t, found); err != nil {
		return err
	}
	d, _ := found.(*v1alpha1.BundleDeployment)
	if s := view.Summarize(d); s.IsReady() && d.Status.RejectedRevision == "" {
		fmt.Fprintf(a.Streams.Out, "%s: Ready with %s, so there is nothing to retry\n", t, s.RevisionName())
		return nil
	}
	p, err := c.ReadPipeline(ctx, t, a)
	if err != nil {
		return err
	}
	sayWhatFailed(a, t, d, p)
	o.withSource = atSource(p) && effective.SourceName(d) != ""
	return reconcileAll(ctx, a, c, o, t)
}

// sayWhatFailed says what is retried.
func sayWhatFailed(a *kit.App, t kit.Target, d *v1alpha1.BundleDeployment, p view.Pipeline) {
	switch {
	case d.Status.RejectedRevision != "":
		fmt.Fprintf(a.Streams.ErrOut, "%s: revision %s was rejected, and is retried\n", t, view.ShortRevision(view.Inline(d.Status.RejectedRevision)))
	case p.Problem != nil:
		fmt.Fprintf(a.Streams.ErrOut, "%s: %s failed (%s), and is retried\n", t, p.Problem.Step, view.Inline(p.Problem.Reason))
	}
}

// atSource tells whether a deployment is blocked by its source.
func atSource(p view.Pipeline) bool {
	return p.Problem != nil && p.Problem.Step == v1alpha1.SourceReadyCondition
}
