// SPDX-License-Identifier: Apache-2.0

// Package program is what the root commands of Satchel's command lines have in common: the flags of kubectl, how unknown
// commands are refused, completion, and how the process starts and ends. A program adds its commands.
package program

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// Main runs a command line as this process does, and returns its exit code. The version is what the linker knows, if anything.
func Main(run func(context.Context, kit.Program, []string) int, version string) int {
	klog.SetLogger(logr.Discard()) // what client libraries log is for programmers; errors are told anyway
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the first Ctrl-C cleans up, a second one ends at once
	return run(ctx, kit.Program{
		Path:    os.Args[0],
		Streams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Version: kit.BuildVersion(version),
		Now:     time.Now,
	}, os.Args[1:])
}

// NewApp returns what commands share. Messages call the program that installs and shows bundles by a name.
func NewApp(p kit.Program, satchel string) *kit.App {
	return &kit.App{
		Streams: p.Streams, Config: genericclioptions.NewConfigFlags(true),
		Name: satchel, Now: p.Now, Version: p.Version,
	}
}

// Twenty flags about the cluster would bury a command's own in its help: the root command lists them.
const (
	globalFlags     = `{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}`
	globalFlagsHint = `  -n NAMESPACE, --context, --kubeconfig and others as kubectl has them: {{.Root.DisplayName}} --help`
)

// Complete gives a root command all but its texts and commands. Users see it under a name, such as kubectl satchel.
func Complete(a *kit.App, root *cobra.Command, display string) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: display}
	root.Args = knownCommand
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.DisableAutoGenTag = true
	root.SuggestionsMinimumDistance = 2
	root.SetIn(a.Streams.In)
	root.SetOut(a.Streams.Out)
	root.SetErr(a.Streams.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return kit.UsageError(cmd, "%v", err) })
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), globalFlags, globalFlagsHint, 1))
	addClusterFlags(a, root)
}

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

// Execute runs the command of the arguments (without the program's name), and returns the exit code. Errors go to the error
// stream as one sentence each. When ctx ends, the command cleans up and Execute returns ExitInterrupted.
func Execute(ctx context.Context, a *kit.App, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	return a.ExitCode(ctx, errors.Join(err, a.Close()))
}
