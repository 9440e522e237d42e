// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/change"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// SuspendCommand returns the command rollout suspend.
func SuspendCommand(a *kit.App) *cobra.Command {
	var o change.Options
	cmd := &cobra.Command{
		Use:   "suspend NAME...",
		Short: "Start no further cluster, until resumed",
		Long: `Sets spec.suspend: no cluster is started or removed any more, nor brought back. Clusters that were started land, and drift
is corrected on every cluster at the revision that it has. To bring back what was started, use rollout abort.

Exit codes:

    0    suspended (or was suspended already)
    2    failed: not found, no access
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Stop one rollout
satchel rollout suspend cert-manager -n fleet

# Stop all of them, everywhere
satchel rollout suspend --all -A

# By a commit
satchel rollout suspend cert-manager -n fleet --export`),
		ValidArgsFunction: completeMany(a),
		RunE:              func(cmd *cobra.Command, args []string) error { return steer(cmd, a, o, args, suspend) },
	}
	selectionFlags(cmd, &o)
	return cmd
}

func suspend(_ kit.Chosen, o *v1alpha1.BundleRollout) (change.Change, error) {
	wanted := change.Suspend(o)
	wanted.Then = "No further cluster is started. What was started lands, and drift is corrected."
	return wanted, nil
}

// ResumeCommand returns the command rollout resume.
func ResumeCommand(a *kit.App) *cobra.Command {
	var o change.Options
	var follow bool
	cmd := &cobra.Command{
		Use:   "resume NAME...",
		Short: "Go on with suspended BundleRollouts, or follow the source again after an abort",
		Long: `Removes spec.suspend. With --follow it also removes spec.revision, which an abort or a user has set, so that the rollout
follows its source again.

It refuses where a GitOps tool has set the field, because that would set it again: remove it there.

Exit codes:

    0    resumed (or was not suspended)
    2    failed: not found, no access, suspended by a GitOps tool
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Go on
satchel rollout resume cert-manager -n fleet

# After an abort: follow the source again
satchel rollout resume cert-manager -n fleet --follow`),
		ValidArgsFunction: completeMany(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return steer(cmd, a, o, args, func(one kit.Chosen, object *v1alpha1.BundleRollout) (change.Change, error) {
				return resume(one, object, o, follow)
			})
		},
	}
	selectionFlags(cmd, &o)
	cmd.Flags().BoolVar(&follow, "follow", false, "Remove spec.revision as well, to follow the source.")
	return cmd
}

func resume(one kit.Chosen, object *v1alpha1.BundleRollout, o change.Options, follow bool) (change.Change, error) {
	wanted, err := change.Resume(one, o)
	if err != nil || object.Spec.Revision == "" {
		return wanted, err
	}
	stays := "stays at revision " + view.Inline(object.Spec.Revision)
	switch {
	case follow:
		if err := change.RefuseSet(one, o, "revision"); err != nil {
			return change.Change{}, err
		}
		if wanted.Spec == nil {
			wanted.Spec = map[string]any{}
		}
		wanted.Spec["revision"] = nil
		wanted.Done = "resumed, and follows its source again"
	case len(wanted.Spec) == 0:
		wanted.Done += "; it " + stays + ", and with --follow it follows its source again"
	default:
		wanted.Then = "It " + stays + "; with --follow it follows its source again."
	}
	return wanted, nil
}
