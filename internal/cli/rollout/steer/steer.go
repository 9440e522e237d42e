// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/change"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// selectionFlags adds the flags of a command about several rollouts.
func selectionFlags(cmd *cobra.Command, o *change.Options) {
	o.Flags(cmd)
	o.EverywhereFlag(cmd)
	o.WritingFlags(cmd)
}

// steer changes the rollouts that the command line names or selects.
func steer(cmd *cobra.Command, a *kit.App, o change.Options, names []string, decide func(kit.Chosen, *v1alpha1.BundleRollout) (change.Change, error)) error {
	targets, err := o.Targets(cmd, append([]string{kit.Rollouts.Word}, names...))
	if err != nil {
		return err
	}
	_, err = change.Run(cmd.Context(), a, o, targets, func(_ context.Context, _ *kit.Cluster, one kit.Chosen) (change.Change, error) {
		object, isRollout := one.Object.(*v1alpha1.BundleRollout)
		if !isRollout {
			return change.Change{}, fmt.Errorf("%s is no %s", one, v1alpha1.BundleRolloutKind)
		}
		return decide(one, object)
	})
	return err
}

// steerOne changes the rollout that the command line names.
func steerOne(cmd *cobra.Command, a *kit.App, o change.Options, args []string, decide func(kit.Chosen, *v1alpha1.BundleRollout) (change.Change, error)) error {
	if _, err := kit.OneRollout(cmd, args); err != nil {
		return err
	}
	return steer(cmd, a, o, args, decide)
}

// completeMany completes the names of rollouts.
func completeMany(a *kit.App) kit.Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		words, directive := a.CompleteOne(kit.Rollouts)(cmd, nil, begun)
		return slices.DeleteFunc(words, func(word string) bool { return slices.Contains(args, word) }), directive
	}
}
