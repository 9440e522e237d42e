// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

func (a *app) retryCommand() *cobra.Command {
	o := reconcileOptions{wait: true}
	cmd := &cobra.Command{
		Use:     "retry NAME",
		GroupID: groupAct,
		Short:   "Retry a BundleDeployment that failed, was rejected or is stalled",
		Long: `Retries a BundleDeployment that failed now, with all of its retries: a revision that remediation rejected is installed
again, and a stalled deployment is reconciled as if it were new. If it is blocked by its source, the source is fetched
again first. A deployment that is Ready is not changed; use reconcile for it.

Exit codes:

    0    Ready, after the retry or without one (with --wait=false: requested)
    1    retried, and not Ready
    2    failed: not found, no access, suspended, not handled within --timeout
    130  interrupted by Ctrl-C (the controller goes on)`,
		Example: a.example(`
# After an outage of the registry
satchel retry podinfo

# Try a revision again that was rolled back
satchel retry podinfo --timeout 10m`),
		ValidArgsFunction: a.completeOne(deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := oneTarget(cmd, args)
			if err != nil {
				return err
			}
			if t.kind.name != deployments.name {
				return usageError(cmd, "retry is about BundleDeployments; for a source: %s reconcile %s", a.name, t.word())
			}
			return a.retry(cmd.Context(), o, t)
		},
	}
	cmd.Flags().BoolVar(&o.wait, "wait", true, "Wait for the outcome.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait for the outcome.")
	return cmd
}

func (a *app) retry(ctx context.Context, o reconcileOptions, t target) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	found, err := c.get(ctx, t)
	if err != nil {
		return err
	}
	if err := a.refuseSuspended(t, found); err != nil {
		return err
	}
	d, _ := found.(*v1alpha1.BundleDeployment)
	if s := summarize(d); s.isReady() && d.Status.RejectedRevision == "" {
		fmt.Fprintf(a.streams.Out, "%s: Ready with revision %s, so there is nothing to retry\n", t, dash(shortRevision(inline(s.revision))))
		return nil
	}
	p, err := c.pipeline(ctx, t, a)
	if err != nil {
		return err
	}
	a.sayWhatFailed(t, d, p)
	o.withSource = atSource(p) && d.SourceName() != ""
	return a.reconcileAll(ctx, c, o, t)
}

// sayWhatFailed says what is retried.
func (a *app) sayWhatFailed(t target, d *v1alpha1.BundleDeployment, p pipeline) {
	switch {
	case d.Status.RejectedRevision != "":
		fmt.Fprintf(a.streams.ErrOut, "%s: revision %s was rejected, and is retried\n", t, shortRevision(inline(d.Status.RejectedRevision)))
	case p.Problem != nil:
		fmt.Fprintf(a.streams.ErrOut, "%s: %s failed (%s), and is retried\n", t, p.Problem.Step, inline(p.Problem.Reason))
	}
}

// atSource tells whether a deployment is blocked by its source.
func atSource(p pipeline) bool {
	return p.Problem != nil && p.Problem.Step == v1alpha1.SourceReadyCondition
}
