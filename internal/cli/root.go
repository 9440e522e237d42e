// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/act"
	"github.com/satchel-dev/satchel/internal/cli/artifacts"
	"github.com/satchel-dev/satchel/internal/cli/author"
	"github.com/satchel-dev/satchel/internal/cli/catalog"
	"github.com/satchel-dev/satchel/internal/cli/check"
	"github.com/satchel-dev/satchel/internal/cli/create"
	"github.com/satchel-dev/satchel/internal/cli/dump"
	"github.com/satchel-dev/satchel/internal/cli/inspect"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/list"
	"github.com/satchel-dev/satchel/internal/cli/preview"
	"github.com/satchel-dev/satchel/internal/cli/program"
	"github.com/satchel-dev/satchel/internal/cli/rbac"
	"github.com/satchel-dev/satchel/internal/cli/remove"
	"github.com/satchel-dev/satchel/internal/cli/resolve"
	"github.com/satchel-dev/satchel/internal/cli/rollout"
	"github.com/satchel-dev/satchel/internal/cli/run"
	"github.com/satchel-dev/satchel/internal/cli/see"
	"github.com/satchel-dev/satchel/internal/cli/setup"
	"github.com/satchel-dev/satchel/internal/cli/trace"
	"github.com/satchel-dev/satchel/internal/cli/tree"
)

// Root returns the program with all its commands, without running it.
func Root(p kit.Program) *cobra.Command { return rootCommand(newApp(p)) }

// rootCommand returns the program with all its commands.
func rootCommand(a *kit.App) *cobra.Command {
	root := &cobra.Command{
		Use:   strings.ReplaceAll(a.Name, " ", "-"),
		Short: "Install cloud-native bundles on Kubernetes from Git-committed manifests",
		Long: `Satchel installs bundles (container images, Git repositories, archives) on Kubernetes clusters, detects and corrects
drift, and uninstalls them in dependency order. BundleDeployment objects declare what is installed; this program shows
their state, and what a bundle would install.

What other tools installed (OLM, RukPak, Helm, Flux, Argo CD) is adopted by a program of its own, the kubectl plugin
satchel-migrate: help migrate says where it is.

` + kit.ExitCodes,
		Example: a.Example(`
# What is installed here, and is it Ready?
satchel get

# Where is it stuck?
satchel status podinfo

# What would this bundle install?
satchel render ./bundle --install-namespace demo`),
	}
	program.Complete(a, root, a.Name)
	root.AddGroup(&cobra.Group{ID: kit.GroupSee, Title: "See what is installed:"},
		&cobra.Group{ID: kit.GroupPreview, Title: "See what a bundle is, and what it would change:"},
		&cobra.Group{ID: kit.GroupAuthor, Title: "Write, publish and try bundles:"},
		&cobra.Group{ID: kit.GroupAct, Title: "Act:"},
		&cobra.Group{ID: kit.GroupOperate, Title: "Operate:"})
	root.AddCommand(commands(a)...)
	return root
}

// commands are all commands, in the order of the groups.
func commands(a *kit.App) []*cobra.Command {
	return []*cobra.Command{
		list.Command(a),
		see.StatusCommand(a),
		tree.Command(a),
		trace.Command(a),
		see.EventsCommand(a),
		see.HistoryCommand(a),
		see.LogsCommand(a),

		preview.PlanCommand(a),
		inspect.RenderCommand(a),
		inspect.ValidateCommand(a),
		inspect.Command(a),
		rbac.Command(a),
		resolve.Command(a),
		artifacts.Command(a),
		catalog.Command(a),

		create.Command(a),
		author.Command(a),
		run.Command(a),

		act.ApproveCommand(a),
		act.ReconcileCommand(a),
		act.SuspendCommand(a),
		act.ResumeCommand(a),
		act.WaitCommand(a),
		act.RollbackCommand(a),
		rollout.Command(a),
		remove.DeleteCommand(a),
		act.ExportCommand(a),

		setup.InstallCommand(a),
		setup.UninstallCommand(a),
		check.Command(a),
		dump.DebugCommand(a),

		versionCommand(a),
		program.CompletionCommand(a, a.Name, "satchel", "satchel"),
		migrateCommand(a),
	}
}

// Run runs the command of the arguments (without the program's name), and returns the exit code.
func Run(ctx context.Context, p kit.Program, args []string) int {
	a := newApp(p)
	return program.Execute(ctx, a, rootCommand(a), args)
}

func newApp(p kit.Program) *kit.App { return program.NewApp(p, kit.DisplayName(p.Path)) }
