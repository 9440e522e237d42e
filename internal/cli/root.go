// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
)

// rootCommand returns the program with all its commands.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   strings.ReplaceAll(a.name, " ", "-"),
		Short: "Install cloud-native bundles on Kubernetes from Git-committed manifests",
		Long: `Satchel installs bundles (container images, Git repositories, archives) on Kubernetes clusters, detects and corrects
drift, and uninstalls them in dependency order. BundleDeployment objects declare what is installed; this program shows
their state, and what a bundle would install.

` + exitCodes,
		Example: a.example(`
# What is installed here, and is it Ready?
satchel get

# Where is it stuck?
satchel status podinfo

# What would this bundle install?
satchel render ./bundle --install-namespace demo`),
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: a.name},
		Args:              knownCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,

		SuggestionsMinimumDistance: 2,
	}
	root.SetIn(a.streams.In)
	root.SetOut(a.streams.Out)
	root.SetErr(a.streams.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError(cmd, "%v", err) })
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), globalFlags, globalFlagsHint, 1))
	root.AddGroup(&cobra.Group{ID: groupSee, Title: "See what is installed:"},
		&cobra.Group{ID: groupPreview, Title: "See what a bundle is, and what it would change:"},
		&cobra.Group{ID: groupAuthor, Title: "Write and publish bundles:"},
		&cobra.Group{ID: groupAct, Title: "Act:"},
		&cobra.Group{ID: groupOperate, Title: "Operate:"})
	root.AddCommand(a.commands()...)
	a.addClusterFlags(root)
	return root
}

// commands are all commands, in the order of the groups.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.getCommand(),
		a.statusCommand(),
		a.treeCommand(),
		a.traceCommand(),
		a.eventsCommand(),
		a.historyCommand(),
		a.logsCommand(),

		a.planCommand(),
		a.diffCommand(),
		a.renderCommand(),
		a.validateCommand(),
		a.inspectCommand(),
		a.rbacCommand(),

		a.initCommand(),
		a.buildCommand(),
		a.pushCommand(),
		a.pullCommand(),
		a.tagCommand(),
		a.verifyCommand(),
		a.runCommand(),
		a.cleanupCommand(),

		a.approveCommand(),
		a.denyCommand(),
		a.reconcileCommand(),
		a.suspendCommand(),
		a.resumeCommand(),
		a.waitCommand(),
		a.retryCommand(),
		a.rollbackCommand(),
		a.deleteCommand(),
		a.exportCommand(),

		a.installCommand(),
		a.uninstallCommand(),
		a.checkCommand(),
		a.debugCommand(),
		a.migrateCommand(),
		a.adoptCommand(),

		a.versionCommand(),
		a.completionCommand(),
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
		return usageError(cmd, "there is no command %q; did you mean %s?", args[0], strings.Join(near, ", "))
	}
	return usageError(cmd, "there is no command %q", args[0])
}

// Groups of commands in the help.
const (
	groupSee     = "see"
	groupPreview = "preview"
	groupAuthor  = "author"
	groupAct     = "act"
	groupOperate = "operate"
)

// addClusterFlags adds the flags of kubectl that choose the cluster and the user.
func (a *app) addClusterFlags(root *cobra.Command) {
	a.config.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.UserAgent = "satchel/" + a.version.Version
		config.QPS, config.Burst = -1, -1 // one user's few requests; the API server has its own fairness
		return config
	}
	a.config.CacheDir = nil // nothing is discovered, so nothing is kept on disk
	a.config.AddFlags(root.PersistentFlags())
	a.completeFlag(root, "namespace", a.completeNamespaces)
	a.completeFlag(root, "context", a.completeContexts)
}

// example indents examples and calls the program as the user does.
func (a *app) example(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		if after, found := strings.CutPrefix(line, "satchel "); found {
			line = a.name + " " + after
		}
		if line != "" {
			lines[i] = "  " + line
		}
	}
	return strings.Join(lines, "\n")
}
