// SPDX-License-Identifier: Apache-2.0

package steer

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
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
	"github.com/satchel-dev/satchel/internal/view/rollouts"
)

// deciding are the flags of rollout approve.
type deciding struct {
	deny     bool
	plan     string
	approver string
	reason   string
	expires  time.Duration
	export   bool
	dryRun   bool
	yes      bool
}

// ApproveCommand returns the command rollout approve.
func ApproveCommand(a *kit.App) *cobra.Command {
	var o deciding
	cmd := &cobra.Command{
		Use:   "approve NAME WAVE",
		Short: "Approve or deny what a wave of a BundleRollout waits for",
		Long: `Shows what the wave waits for, asks, and creates a BundleApproval of exactly that plan: of this wave, this revision and
this run, to begin or to end. Another revision needs another approval. The wave named removal stands for the clusters of
a removal that is held, and the wave named takeover for those of a former BundleRollout that this one takes over.

With --plan you approve only the plan that you reviewed before, as rollout plan prints it: you are not asked, and if
another plan waits by now, the command fails. Without a terminal, --plan or --yes is needed. You need permission to
create bundleapprovals; the ClusterRole satchel-approve grants it. With --deny the BundleApproval denies that plan, even
if another user approves it.

Exit codes:

    0    approved or denied, or was so already (with --dry-run or --export: shown)
    1    nothing waits for an approval, or the answer to the question was no
    2    failed: not found, no access, not confirmed, another plan waits than --plan says
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Review what waits, and approve it
satchel rollout approve cert-manager prod -n fleet

# Approve by a commit
satchel rollout approve cert-manager prod -n fleet --export > approvals/cert-manager-prod.yaml

# Deny it
satchel rollout approve cert-manager prod -n fleet --deny --reason "not before the release freeze ends"`),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return completeWaiting(cmd.Context(), a, args[0]), cobra.ShellCompDirectiveNoFileComp
			}
			return a.CompleteOne(kit.Rollouts)(cmd, args, begun)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 2:
				return kit.UsageError(cmd, "rollout approve needs the names of a BundleRollout and of a wave, got %s", kit.Given(args))
			case o.expires < 0 || cmd.Flag("expires").Changed && o.expires == 0:
				return kit.UsageError(cmd, "--expires takes a time from now on, such as 1h")
			}
			return approve(cmd.Context(), a, o, kit.Target{Kind: kit.Rollouts, Name: args[0]}, args[1])
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.deny, "deny", false, "Deny the plan.")
	flags.StringVar(&o.plan, "plan", "", "Digest of the plan that was reviewed; if another one waits, the command fails.")
	flags.StringVar(&o.approver, "approver", "", "User who decided, for the history: your own user name, unless you have the verb attest for bundleapprovals.")
	flags.StringVar(&o.reason, "reason", "", "Why, for others to read; at most 1024 characters.")
	flags.DurationVar(&o.expires, "expires", 0, "How long the decision holds, if the wave does not begin before; without it: for ever.")
	flags.BoolVar(&o.export, "export", false, "Print the BundleApproval, to be committed to Git, instead of creating it.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Send the decision to the API server as a dry run only.")
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask.")
	cmd.MarkFlagsMutuallyExclusive("export", "dry-run")
	return cmd
}

// completeWaiting completes the waves of a rollout; none when the cluster does not answer in time.
func completeWaiting(ctx context.Context, a *kit.App, name string) []string {
	ctx, cancel := context.WithTimeout(ctx, kit.CompletionTimeout)
	defer cancel()
	c, err := a.Connect()
	if err != nil {
		return nil
	}
	object, err := c.Rollout(ctx, kit.Target{Kind: kit.Rollouts, Name: name})
	if err != nil {
		return nil
	}
	return wavesOf(object)
}

// approve shows what waits, and creates the decision about it.
func approve(ctx context.Context, a *kit.App, o deciding, t kit.Target, wave string) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	object, err := c.Rollout(ctx, t)
	if err != nil {
		return err
	}
	plan, known := planOfWave(object, wave)
	switch {
	case !known:
		return fmt.Errorf("%s has no wave %q; it has: %s", t, wave, strings.Join(wavesOf(object), ", "))
	case plan == "":
		fmt.Fprintf(a.Streams.ErrOut, "%s: wave %s waits for no approval now; rollout plan shows what will have to be approved\n", t, view.Inline(wave))
		return kit.ErrNo
	case o.plan != "" && o.plan != plan:
		return fmt.Errorf("wave %s of %s waits for an approval of another plan by now, %s: review it", wave, t, plan)
	}
	approval := o.approval(object, wave, plan, a.Now())
	if o.export {
		return printer.PrintValue(a.Streams.Out, printer.OutputYAML, manifestOfApproval(approval))
	}
	if err := o.confirm(ctx, a, object, wave, plan); err != nil {
		return err
	}
	return createApproval(ctx, a, c, o, approval)
}

// planOfWave is the plan that a wave waits for; empty if for none.
func planOfWave(o *v1alpha1.BundleRollout, wave string) (plan string, known bool) {
	if wave == v1alpha1.WaveRemoval {
		if o.Status.Removal == nil {
			return "", true
		}
		return o.Status.Removal.Plan, true
	}
	if wave == v1alpha1.WaveTakeover {
		if o.Status.Takeover == nil {
			return "", true
		}
		return o.Status.Takeover.Plan, true
	}
	for i := range o.Status.Waves {
		if o.Status.Waves[i].Name == wave {
			return o.Status.Waves[i].Plan, true
		}
	}
	return "", false
}

func wavesOf(o *v1alpha1.BundleRollout) []string {
	var names []string
	for i := range o.Status.Waves {
		names = append(names, o.Status.Waves[i].Name)
	}
	return append(names, v1alpha1.WaveRemoval, v1alpha1.WaveTakeover)
}

// confirm shows the rollout and asks, unless the plan was reviewed before. A denial changes nothing, so it is not asked for.
func (o *deciding) confirm(ctx context.Context, a *kit.App, object *v1alpha1.BundleRollout, wave, plan string) error {
	if o.plan != "" {
		return nil
	}
	fmt.Fprint(a.Streams.Out, waitingText(rollouts.New(object, a.Now()), wave, plan))
	if o.deny || o.yes || o.dryRun {
		return nil
	}
	if !a.CanAsk() {
		return fmt.Errorf("cannot ask for confirmation without a terminal: add --yes, or --plan %s if you reviewed that plan", plan)
	}
	return a.Confirm(ctx, fmt.Sprintf("Approve wave %s? Type yes: ", view.Inline(wave)), "yes", "Nothing was approved.")
}

// waitingText says what waits for the decision.
func waitingText(s rollouts.Status, wave, plan string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s/%s: %s\n", v1alpha1.BundleRolloutKind, view.Inline(s.Namespace), view.Inline(s.Name), s.State)
	if wave == v1alpha1.WaveRemoval {
		fmt.Fprintf(&out, "  %s\n", view.OneLine(s.Removal, 0))
	}
	if wave == v1alpha1.WaveTakeover {
		fmt.Fprintf(&out, "  %s\n", view.OneLine(s.Takeover, 0))
	}
	for i := range s.Waves {
		one := &s.Waves[i]
		if one.Name == wave {
			fmt.Fprintf(&out, "  wave %s: %d of %d clusters have it; %s\n", view.Inline(wave), one.Updated, one.Total, one.Detail)
		}
	}
	fmt.Fprintf(&out, "  plan %s\n", plan)
	return out.String()
}

// approval is the decision as an object. Its name contains the plan, so that a second decision about it is noticed.
func (o *deciding) approval(object *v1alpha1.BundleRollout, wave, plan string, now time.Time) *v1alpha1.BundleApproval {
	digits := strings.TrimPrefix(plan, "sha256:")
	middle, decision := "-", v1alpha1.DecisionApprove
	if o.deny {
		middle, decision = "-deny-", v1alpha1.DecisionDeny
	}
	approval := &v1alpha1.BundleApproval{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.BundleApprovalKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name + "-" + wave + middle + digits[:min(12, len(digits))]},
		Spec:       v1alpha1.BundleApprovalSpec{Rollout: object.Name, Plan: plan, Decision: decision, Approver: o.approver, Reason: o.reason},
	}
	if o.expires > 0 {
		approval.Spec.ExpirationTime = new(metav1.NewTime(now.Add(o.expires).UTC().Truncate(time.Second)))
	}
	return approval
}

// manifestOfApproval is the decision as it is committed.
func manifestOfApproval(approval *v1alpha1.BundleApproval) any {
	return map[string]any{
		"apiVersion": approval.APIVersion, "kind": approval.Kind,
		"metadata": map[string]any{"namespace": approval.Namespace, "name": approval.Name}, "spec": approval.Spec,
	}
}

// createApproval creates the decision, unless one of the same name and content is valid already. If that one was used or has expired,
// the new one gets a generated name.
func createApproval(ctx context.Context, a *kit.App, c *kit.Cluster, o deciding, approval *v1alpha1.BundleApproval) error {
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
		if isValid(there, approval, a.Now()) {
			fmt.Fprintf(a.Streams.Out, "BundleApproval %s: says so already\n", view.Inline(name))
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
	done, suffix := "approves", ""
	if o.deny {
		done = "denies"
	}
	if o.dryRun {
		suffix = " (dry run)"
	}
	fmt.Fprintf(a.Streams.Out, "BundleApproval %s: %s plan %s of BundleRollout %s%s\n", view.Inline(approval.Name), done,
		view.ShortRevision(view.Inline(approval.Spec.Plan)), view.Inline(approval.Spec.Rollout), suffix)
	return nil
}

// isValid tells whether an existing decision equals the wanted one and still holds.
func isValid(there, wanted *v1alpha1.BundleApproval, now time.Time) bool {
	hasExpired := there.Spec.ExpirationTime != nil && !now.Before(there.Spec.ExpirationTime.Time)
	return there.Spec.Rollout == wanted.Spec.Rollout && there.Spec.Plan == wanted.Spec.Plan && there.Spec.Decision == wanted.Spec.Decision &&
		there.Status.ConsumedTime == nil && there.DeletionTimestamp.IsZero() && !hasExpired
}
