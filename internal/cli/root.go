// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/internal/cli/act"
	"github.com/satchel-dev/satchel/internal/cli/adopt"
	"github.com/satchel-dev/satchel/internal/cli/artifacts"
	"github.com/satchel-dev/satchel/internal/cli/author"
	"github.com/satchel-dev/satchel/internal/cli/catalog"
	"github.com/satchel-dev/satchel/internal/cli/check"
	"github.com/satchel-dev/satchel/internal/cli/create"
	"github.com/satchel-dev/satchel/internal/cli/dump"
	"github.com/satchel-dev/satchel/internal/cli/inspect"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/list"
	"github.com/satchel-dev/satchel/internal/cli/migrate"
	"github.com/satchel-dev/satchel/internal/cli/preview"
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

` + kit.ExitCodes,
		Example: a.Example(`
# What is installed here, and is it Ready?
satchel get

# Where is it stuck?
satchel status podinfo

# What would this bundle install?
satchel render ./bundle --install-namespace demo`),
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: a.Name},
		Args:              knownCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,

		SuggestionsMinimumDistance: 2,
	}
	root.SetIn(a.Streams.In)
	root.SetOut(a.Streams.Out)
	root.SetErr(a.Streams.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return kit.UsageError(cmd, "%v", err) })
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), globalFlags, globalFlagsHint, 1))
	root.AddGroup(&cobra.Group{ID: kit.GroupSee, Title: "See what is installed:"},
		&cobra.Group{ID: kit.GroupPreview, Title: "See what a bundle is, and what it would change:"},
		&cobra.Group{ID: kit.GroupAuthor, Title: "Write, publish and try bundles:"},
		&cobra.Group{ID: kit.GroupAct, Title: "Act:"},
		&cobra.Group{ID: kit.GroupOperate, Title: "Operate:"})
	root.AddCommand(commands(a)...)
	addClusterFlags(a, root)
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
		migrate.Command(a),
		adopt.Command(a),

		versionCommand(a),
		completionCommand(a),
	}
}

// Twenty flags about the cluster would bury a command's own in its help: the root command lists them.
const (
	globalFlags     = `{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}`
	globalFlagsHint = `  -n NAMESPACE, --context, --kubeconfig and others as kubectl has them: {{.Root.DisplayName}} --help`
)

// knownCommand refuses unknown commands, and suggests similar ones.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return kit.UsageError(cmd, "there is no command %q; did you mean %s?", args[0], strings.Join(near, ", "))
	}
	return kit.UsageError(cmd, "there is no command %q", args[0])
}

// addClusterFlags adds the flags of kubectl that choose the cluster and the user.
func addClusterFlags(a *kit.App, root *cobra.Command) {
	a.Config.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.UserAgent = "satchel/" + a.Version.Version
		config.QPS, config.Burst = -1, -1 // one user's few requests; the API server has its own fairness
		return config
	}
	a.Config.CacheDir = nil // nothing is discovered, so nothing is kept on disk
	a.Config.AddFlags(root.PersistentFlags())
	a.CompleteFlag(root, "namespace", a.CompleteNamespaces)
	a.CompleteFlag(root, "context", a.CompleteContexts)
}

// Run runs the command of the arguments (without the program's name), and returns the exit code. Errors go to
// the error stream as one sentence each. When ctx ends, the command cleans up and returns ExitInterrupted.
func Run(ctx context.Context, p kit.Program, args []string) int { return execute(ctx, newApp(p), args) }

func execute(ctx context.Context, a *kit.App, args []string) int {
	root := rootCommand(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	return a.ExitCode(ctx, errors.Join(err, a.Close()))
}

func newApp(p kit.Program) *kit.App {
	return &kit.App{
		Streams: p.Streams, Config: genericclioptions.NewConfigFlags(true),
		Name: kit.DisplayName(p.Path), Now: p.Now, Version: p.Version,
	}
}
