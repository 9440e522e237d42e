// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/decision"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
	"github.com/satchel-dev/satchel/internal/view/rollouts"
)

// ApproveCommand returns the command rollout approve.
func ApproveCommand(a *kit.App) *cobra.Command {
	var o decision.Options
	var approver string
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
			if len(args) != 2 {
				return kit.UsageError(cmd, "rollout approve needs the names of a BundleRollout and of a wave, got %s", kit.Given(args))
			}
			if err := o.Check(cmd); err != nil {
				return err
			}
			about := v1alpha1.BundleApprovalSpec{Rollout: args[0], Approver: approver}
			return approve(cmd.Context(), a, o, about, args[1])
		},
	}
	o.Flags(cmd)
	cmd.Flags().StringVar(&approver, "approver", "", "User who decided, for the history: your own user name, unless you have the verb attest for bundleapprovals.")
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
func approve(ctx context.Context, a *kit.App, o decision.Options, about v1alpha1.BundleApprovalSpec, wave string) error {
	t := kit.Target{Kind: kit.Rollouts, Name: about.Rollout}
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
	case o.Plan != "" && o.Plan != plan:
		return fmt.Errorf("wave %s of %s waits for an approval of another plan by now, %s: review it", wave, t, plan)
	}
	about.Plan = plan
	approval := o.Approval(object.Namespace, object.Name+"-"+wave, about, a.Now())
	if o.Export {
		return decision.Print(a, approval)
	}
	if o.Plan == "" {
		fmt.Fprint(a.Streams.Out, waitingText(rollouts.New(object, a.Now()), wave, plan))
	}
	if err := o.CanConfirm(a, plan); err != nil {
		return err
	}
	if err := o.Confirm(ctx, a, fmt.Sprintf("Approve wave %s? Type yes: ", view.Inline(wave))); err != nil {
		return err
	}
	return o.Create(ctx, a, c, approval)
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
