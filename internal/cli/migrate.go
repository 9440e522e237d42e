// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// migrateCommand says where the commands for migrations are. It is hidden from help; it points users to the plugin.
func migrateCommand(a *kit.App) *cobra.Command {
	return &cobra.Command{
		Use:     "migrate",
		Aliases: []string{"adopt"},
		Hidden:  true,
		Short:   "Say where the commands are that migrate from other tools",
		Long: `Migrations are a task of the kubectl plugin satchel-migrate, a program of its own:

    kubectl satchel-migrate manifests    translates manifests of RukPak and OLM into Satchel's
    kubectl satchel-migrate adopt        adopts objects that another tool installed, without a restart

Each archive of a release has it beside satchel, as kubectl-satchel_migrate. Put it into a folder of your PATH, where
kubectl finds it. To build it, run make build in the repository: it is in bin.

` + kit.ExitCodes,
		Example: `  kubectl satchel-migrate manifests --cluster -n operators > satchel.yaml
  kubectl satchel-migrate adopt my-operator -n operators --dry-run`,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true}, // those that the commands have there
		ValidArgsFunction:  cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			instead := "kubectl satchel-migrate manifests"
			if cmd.CalledAs() == "adopt" {
				instead = "kubectl satchel-migrate adopt"
			}
			return errors.New(cmd.CalledAs() + " is a command of the kubectl plugin satchel-migrate: put kubectl-satchel_migrate, which is beside satchel in each archive of a release, " +
				"into a folder of your PATH, and run " + instead + "; see " + a.Name + " help migrate")
		},
	}
}
