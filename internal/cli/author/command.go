// SPDX-License-Identifier: Apache-2.0

package author

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// Command returns the command bundle, with all commands for authors below it.
func Command(a *kit.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "bundle init|build|push|verify",
		GroupID: kit.GroupAuthor,
		Short:   "Write, build, publish and verify bundles, without a cluster",
		Long: `Commands for authors of bundles. They read and write folders, archives and registries, and never a cluster. The commands
render, validate, inspect and plan show what a bundle contains, and what it would change.

` + kit.ExitCodes,
		Example: a.Example(`
# From manifests to a signed bundle in a registry
satchel bundle init shop --from ./k8s --image ghcr.io/org/shop:v1.0.0
satchel bundle push shop/bundle ghcr.io/org/shop:v1.0.0 --sign-key cosign.key`),
		ValidArgsFunction: cobra.NoFileCompletions, // the commands below are completed
		Args:              knownVerb,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		// Other programs have these as commands of their own.
		SuggestFor:                 []string{"init", "build", "push", "verify"},
		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(initCommand(a), buildCommand(a), pushCommand(a), verifyCommand(a))
	return cmd
}

// knownVerb refuses what is no command below bundle.
func knownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return kit.UsageError(cmd, "there is no command bundle %q; did you mean bundle %s?", args[0], strings.Join(near, ", bundle "))
	}
	return kit.UsageError(cmd, "there is no command bundle %q", args[0])
}
