// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/decision"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/preview"
	"github.com/satchel-dev/satchel/internal/cli/printer"
)

// ApproveCommand returns the command approve.
func ApproveCommand(a *kit.App) *cobra.Command {
	var o decision.Options
	cmd := &cobra.Command{
		Use:     "approve NAME",
		GroupID: kit.GroupAct,
		Short:   "Approve or deny the pending plan of a BundleDeployment",
		Long: `Shows the pending plan as the command plan does, asks, and creates a BundleApproval of exactly that plan. The plan is
carried out once; if a commit or an edit changes it before, the new plan needs its own approval. A held prune is
approved in the same way.

With --plan you approve only the plan that you reviewed before: you are not asked, and if another plan is pending by now,
the command fails. Without a terminal, --plan or --yes is needed. You need permission to create bundleapprovals; the
ClusterRole satchel-approve grants it.

With --deny the BundleApproval denies exactly that plan, even if another user approves it. The applied revision keeps
running, and its drift is corrected. The denial holds until the plan changes, or the BundleApproval is deleted; the author
of the plan finds the reason in the status of the BundleDeployment.

Exit codes:

    0    approved or denied, or was so already (with --dry-run or --export: shown)
    1    nothing waits for an approval, or the answer to the question was no
    2    failed: not found, no access, not confirmed, another plan waits than --plan says
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Review the pending plan, and approve it
satchel approve podinfo

# Approve the plan that you reviewed, and wait until it is applied
satchel approve podinfo --plan sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef --reason "tested"
satchel wait podinfo

# Approve by a commit; only for the next hour
satchel approve podinfo --export --expires 1h > approvals/podinfo.yaml

# Deny it; the author of the plan reads the reason in the status
satchel approve podinfo --deny --reason "not before the release freeze ends"

# Withdraw the denial
kubectl delete bundleapprovals -n demo podinfo-deny-5f70bf18a086`),
		ValidArgsFunction: a.CompleteOne(kit.Deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kit.OneTarget(cmd, args)
			switch {
			case err != nil:
				return err
			case t.Kind.Name != kit.Deployments.Name:
				return kit.UsageError(cmd, "%s is about BundleDeployments: a %s has no plan", cmd.Name(), t.Kind.Word)
			}
			if err := o.Check(cmd); err != nil {
				return err
			}
			return decide(cmd.Context(), a, o, t)
		},
	}
	o.Flags(cmd)
	a.CompleteFlag(cmd, "plan", completePlan(a))
	return cmd
}

// completePlan completes the digest of the pending plan.
func completePlan(a *kit.App) kit.Completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := a.Connect()
		if err != nil || len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), kit.CompletionTimeout)
		defer cancel()
		found, err := c.Get(ctx, kit.ParseTargets(args)[0])
		if d, isDeployment := found.(*v1alpha1.BundleDeployment); err == nil && isDeployment && d.Status.Plan != nil && d.Status.Plan.Digest != "" {
			return []string{d.Status.Plan.Digest}, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// decide shows the pending plan, and creates the decision about it.
func decide(ctx context.Context, a *kit.App, o decision.Options, t kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	found, err := c.Get(ctx, t)
	if err != nil {
		return err
	}
	d, isDeployment := found.(*v1alpha1.BundleDeployment)
	if !isDeployment {
		return fmt.Errorf("%s is no BundleDeployment", t)
	}
	waits, err := waiting(a, d, o)
	if err != nil {
		return err
	}
	approval := o.Approval(d.Namespace, d.Name, v1alpha1.BundleApprovalSpec{Deployment: d.Name, Plan: d.Status.Plan.Digest}, a.Now())
	if o.Export {
		fmt.Fprint(a.Streams.ErrOut, waits.Print(printer.StyleFor(a.Streams.ErrOut)))
		return decision.Print(a, approval)
	}
	fmt.Fprint(a.Streams.Out, waits.Print(printer.StyleFor(a.Streams.Out)))
	if err := waits.refuse(o); err != nil {
		return err
	}
	if err := review(ctx, a, o, t, d); err != nil {
		return err
	}
	return o.Create(ctx, a, c, approval)
}

// review shows what the plan changes, unless it was reviewed before, and asks whether to approve it. A denial changes nothing,
// so it is not asked for.
func review(ctx context.Context, a *kit.App, o decision.Options, t kit.Target, d *v1alpha1.BundleDeployment) error {
	if o.Plan != "" || o.Deny {
		return nil
	}
	if err := o.CanConfirm(a, d.Status.Plan.Digest); err != nil {
		return err
	}
	planned, err := preview.Current(ctx, a, t)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		a.Note([]string{fmt.Sprintf("the changes are not shown: %v", err)})
	default:
		if planned.Digest != d.Status.Plan.Digest {
			a.Note([]string{"the cluster or the source changed since the controller made the pending plan: what follows may differ from it"})
		}
		fmt.Fprint(a.Streams.Out, "\n"+planned.Print(printer.StyleFor(a.Streams.Out), a.Name, false))
	}
	return o.Confirm(ctx, a, "Approve it? Type yes: ")
}
