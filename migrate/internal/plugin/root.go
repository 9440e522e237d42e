// SPDX-License-Identifier: Apache-2.0

// Package plugin is the root command of the kubectl plugin satchel-migrate.
package plugin

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/program"
	"github.com/satchel-dev/satchel/migrate/internal/adopt"
	"github.com/satchel-dev/satchel/migrate/internal/manifests"
)

const (
	// File is the name of the program.
	File = "kubectl-satchel_migrate"
	// name is that of the plugin, and display how users call it.
	name    = "satchel-migrate"
	display = "kubectl " + name
)

// Root returns the program with all its commands, without running it.
func Root(p kit.Program) *cobra.Command { return rootCommand(newApp(p)) }

// Run runs the command of the arguments (without the program's name), and returns the exit code.
func Run(ctx context.Context, p kit.Program, args []string) int {
	a := newApp(p)
	return program.Execute(ctx, a, rootCommand(a), args)
}

// newApp has messages call the command line of Satchel by its name, as they name commands that are there.
func newApp(p kit.Program) *kit.App { return program.NewApp(p, "satchel") }

func rootCommand(a *kit.App) *cobra.Command {
	root := &cobra.Command{
		Use:   File,
		Short: "Migrate to Satchel what other tools installed on Kubernetes",
		Long: `Migrates to Satchel what the Operator Lifecycle Manager, RukPak, Helm, Flux or Argo CD installed, without a restart: the
command manifests translates manifests of RukPak and OLM, the command adopt adopts the objects on the cluster. The former
tool need not be stopped first, and nothing is changed before the changes were shown and confirmed.

` + kit.ExitCodes,
		Example: a.Example(`
# Translate what the Operator Lifecycle Manager runs in a namespace
kubectl satchel-migrate manifests --cluster -n operators > satchel.yaml

# Show what would be adopted
kubectl satchel-migrate adopt my-operator -n operators --dry-run`),
		Version: a.Version.String(),
	}
	program.Complete(a, root, display)
	root.SetVersionTemplate(display + " {{.Version}}\n")
	root.AddCommand(
		manifests.Command(a),
		adopt.Command(a),
		program.CompletionCommand(a, display, File, name),
	)
	return root
}
