// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/satchel-dev/satchel/internal/worker"
)

// Exit codes of every command.
const (
	// ExitOK says that the command did what it was asked and the answer is good.
	ExitOK = 0
	// ExitNo says that the command worked and the answer is no, such as: not Ready.
	ExitNo = 1
	// ExitError says that the command failed: wrong use, not found, no access, a refused bundle.
	ExitError = 2
	// ExitInterrupted says that Ctrl-C ended the command.
	ExitInterrupted = 130
)

// exitCodes is the part of the help about exit codes.
const exitCodes = `Exit codes:

    0    done, and the answer is good
    1    done, and the answer is no (such as: not Ready)
    2    failed: wrong use, not found, no access, a refused bundle
    130  interrupted by Ctrl-C`

// errNo ends a command with ExitNo; what there was to say has been printed.
var errNo = errors.New("the answer is no")

// errRefused ends a command with ExitError; what there was to say has been printed.
var errRefused = errors.New("refused")

// app is what the commands share.
type app struct {
	streams genericiooptions.IOStreams
	config  *genericclioptions.ConfigFlags
	name    string // as the user calls the program: satchel, or kubectl satchel
	now     func() time.Time
	version VersionInfo
	pool    *worker.Pool // see workers

	starting sync.Mutex // of the pool
}

// Program is how the command line was started.
type Program struct {
	// Path is the first argument of the process, by which it knows its name.
	Path string
	// Streams are the three standard streams.
	Streams genericiooptions.IOStreams
	// Version is what the linker and the Go toolchain know about the binary.
	Version VersionInfo
	// Now is the clock.
	Now func() time.Time
}

// Run runs the command of the arguments (without the program's name), and returns the exit code. Errors go to
// the error stream as one sentence each. When ctx ends, the command cleans up and returns ExitInterrupted.
func Run(ctx context.Context, p Program, args []string) int { return newApp(p).run(ctx, args) }

func (a *app) run(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	return a.exitCode(ctx, errors.Join(err, a.close()))
}

func newApp(p Program) *app {
	return &app{
		streams: p.Streams, config: genericclioptions.NewConfigFlags(true),
		name: displayName(p.Path), now: p.Now, version: p.Version,
	}
}

// displayName is how the user calls the program: kubectl runs its plugins under names that begin with kubectl-.
func displayName(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	if plugin, found := strings.CutPrefix(name, "kubectl-"); found && plugin != "" {
		return "kubectl " + plugin
	}
	return "satchel"
}

// exitCode prints the error, if there is something to say, and returns the exit code.
func (a *app) exitCode(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, errNo):
		return ExitNo
	case errors.Is(err, errRefused):
		return ExitError
	case ctx.Err() != nil:
		fmt.Fprintln(a.streams.ErrOut, "Interrupted.")
		return ExitInterrupted
	}
	fmt.Fprintf(a.streams.ErrOut, "Error: %s\n", printable(a.explain(err)))
	return ExitError
}

// usageError says what is wrong with the command line and where its help is.
func usageError(cmd *cobra.Command, format string, args ...any) error {
	return fmt.Errorf("%s; see %s --help", fmt.Sprintf(format, args...), cmd.CommandPath())
}
