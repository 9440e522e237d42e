// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/rollout/steer"
)

// Command returns the command rollout, with all commands below it.
func Command(a *kit.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rollout",
		GroupID: kit.GroupAct,
		Short:   "See and steer BundleRollouts: one bundle on many clusters, in waves",
		Long: `Shows how far a BundleRollout is and what it waits for, what a run would do, and stops, resumes, retries or takes back
one. All that these commands change are fields of the BundleRollout; with --export they print what to commit instead.
BundleRollouts are optional: install adds them with --with rollouts.

` + kit.ExitCodes,
		Example: a.Example(`
# How far is it, and what is it waiting for?
satchel rollout status cert-manager -n fleet

# Stop it now, and bring all clusters back
satchel rollout suspend cert-manager -n fleet
satchel rollout abort cert-manager -n fleet`),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(statusCommand(a), clustersCommand(a), historyCommand(a), planCommand(a), renderCommand(a),
		steer.SuspendCommand(a), steer.ResumeCommand(a), steer.RetryCommand(a), steer.AbortCommand(a), steer.ApproveCommand(a))
	return cmd
}
