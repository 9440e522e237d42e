// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/preview"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// deciding are the flags of approve.
type deciding struct {
	deny    bool
	plan    string
	reason  string
	expires time.Duration
	export  bool
	dryRun  bool
	yes     bool
}

// decision is what the flags decide.
func (o deciding) decision() v1alpha1.ApprovalDecision {
	if o.deny {
		return v1alpha1.DecisionDeny
	}
	return v1alpha1.DecisionApprove
}

// ApproveCommand returns the command approve.
func ApproveCommand(a *kit.App) *cobra.Command {
	var o deciding
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
			case o.expires < 0 || cmd.Flag("expires").Changed && o.expires == 0:
				return kit.UsageError(cmd, "--expires takes a time from now on, such as 1h")
			}
			return decide(cmd.Context(), a, o, t)
		},
	}
	approveFlags(a, cmd, &o)
	return cmd
}

func approveFlags(a *kit.App, cmd *cobra.Command, o *deciding) {
	flags := cmd.Flags()
	flags.BoolVar(&o.deny, "deny", false, "Deny the plan.")
	flags.StringVar(&o.plan, "plan", "", "Digest of the plan that was reviewed; if another plan is pending, the command fails.")
	a.CompleteFlag(cmd, "plan", func(cmd *cobra.Command, args []string, arg2 string) ([]string, cobra.ShellCompDirective) {
		return completePlan(a, cmd, args, arg2)
	})
	flags.StringVar(&o.reason, "reason", "", "Why, for others to read; at most 1024 characters.")
	flags.DurationVar(&o.expires, "expires", 0, "How long the decision holds, if the plan is not begun before; without it: for ever.")
	flags.BoolVar(&o.export, "export", false, "Print the BundleApproval, to be committed to Git, instead of creating it.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Show the pending plan, and send the decision to the API server as a dry run only.")
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask.")
	cmd.MarkFlagsMutuallyExclusive("export", "dry-run")
}

// completePlan completes the digest of the pending plan.
func completePlan(a *kit.App, cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
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

// decide shows the pending plan, and creates the decision about it.
func decide(ctx context.Context, a *kit.App, o deciding, t kit.Target) error {
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
	approval := o.approval(d, a.Now())
	if o.export {
		fmt.Fprint(a.Streams.ErrOut, waits.Print(printer.StyleFor(a.Streams.ErrOut)))
		return printer.PrintValue(a.Streams.Out, printer.OutputYAML, manifestOf(approval))
	}
	fmt.Fprint(a.Streams.Out, waits.Print(printer.StyleFor(a.Streams.Out)))
	if err := waits.refuse(o); err != nil {
		return err
	}
	if err := review(ctx, a, o, t, d); err != nil {
		return err
	}
	return createDecision(ctx, a, c, o, approval)
}

// review shows what the plan changes, unless it was reviewed before, and asks whether to approve it. A denial changes nothing,
// so it is not asked for.
func review(ctx context.Context, a *kit.App, o deciding, t kit.Target, d *v1alpha1.BundleDeployment) error {
	if o.plan != "" || o.deny {
		return nil
	}
	if !o.yes && !o.dryRun && !a.CanAsk() {
		return fmt.Errorf("cannot ask for confirmation without a terminal: add --yes, or --plan %s if you reviewed that plan", d.Status.Plan.Digest)
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
	if o.yes || o.dryRun {
		return nil
	}
	return a.Confirm(ctx, "Approve it? Type yes: ", "yes", "Nothing was approved.")
}

// approval is the decision as an object. Its name contains the plan, so that a second decision about it is noticed.
func (o deciding) approval(d *v1alpha1.BundleDeployment, now time.Time) *v1alpha1.BundleApproval {
	digits := strings.TrimPrefix(d.Status.Plan.Digest, "sha256:")
	middle := map[v1alpha1.ApprovalDecision]string{v1alpha1.DecisionApprove: "-", v1alpha1.DecisionDeny: "-deny-"}[o.decision()]
	approval := &v1alpha1.BundleApproval{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.BundleApprovalKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name + middle + digits[:min(12, len(digits))]},
		Spec:       v1alpha1.BundleApprovalSpec{Deployment: d.Name, Plan: d.Status.Plan.Digest, Decision: o.decision(), Reason: o.reason},
	}
	if o.expires > 0 {
		approval.Spec.ExpirationTime = new(metav1.NewTime(now.Add(o.expires).UTC().Truncate(time.Second)))
	}
	return approval
}

// manifestOf is the decision as it is committed: without what a server fills in.
func manifestOf(approval *v1alpha1.BundleApproval) any {
	return map[string]any{
		"apiVersion": approval.APIVersion, "kind": approval.Kind,
		"metadata": map[string]any{"namespace": approval.Namespace, "name": approval.Name},
		"spec":     approval.Spec,
	}
}

// createDecision creates the decision, unless one of the same name and content is valid already. If that one was used or has
// expired, the new one gets a generated name.
func createDecision(ctx context.Context, a *kit.App, c *kit.Cluster, o deciding, approval *v1alpha1.BundleApproval) error {
	name := approval.Name
	options := []client.CreateOption{client.FieldOwner(kit.FieldManager)}
	if o.dryRun {
		options = append(options, client.DryRunAll)
	}
	err := c.Client.Create(ctx, approval, options...)
	if apierrors.IsAlreadyExists(err) {
		there := new(v1alpha1.BundleApproval)
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(approval), there); err != nil {
			return &kit.AccessError{Verb: "get", Resource: "bundleapprovals", Namespace: c.Namespace, Err: err}
		}
		if holds(there, approval, a.Now()) {
			fmt.Fprintf(a.Streams.Out, "%s: says so already\n", view.Inline("BundleApproval "+name))
			return nil
		}
		approval.Name = ""
		approval.GenerateName = name + "-"
		approval.ResourceVersion = ""
		err = c.Client.Create(ctx, approval, options...)
	}
	if err != nil {
		return &kit.AccessError{Verb: "create", Resource: "bundleapprovals", Namespace: c.Namespace, Err: err}
	}
	done := map[v1alpha1.ApprovalDecision]string{v1alpha1.DecisionApprove: "approves", v1alpha1.DecisionDeny: "denies"}[o.decision()]
	suffix := ""
	if o.dryRun {
		suffix = " (dry run)"
	}
	fmt.Fprintf(a.Streams.Out, "BundleApproval %s: %s plan %s of BundleDeployment %s%s\n", view.Inline(approval.Name), done,
		view.Inline(view.ShortRevision(approval.Spec.Plan)), view.Inline(approval.Spec.Deployment), suffix)
	return nil
}

// holds tells whether an existing decision equals the wanted one and is still valid.
func holds(there, wanted *v1alpha1.BundleApproval, now time.Time) bool {
	return there.Spec.Deployment == wanted.Spec.Deployment && there.Spec.Plan == wanted.Spec.Plan && there.Spec.Decision == wanted.Spec.Decision &&
		there.Status.ConsumedTime == nil && there.DeletionTimestamp.IsZero() && (there.Spec.ExpirationTime == nil || now.Before(there.Spec.ExpirationTime.Time))
}
