// SPDX-License-Identifier: Apache-2.0

package kit

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

	"github.com/satchel-dev/satchel/internal/view"
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

// ExitCodes is the part of the help about exit codes.
const ExitCodes = `Exit codes:

    0    done, and the answer is good
    1    done, and the answer is no (such as: not Ready)
    2    failed: wrong use, not found, no access, a refused bundle
    130  interrupted by Ctrl-C`

// ErrNo ends a command with ExitNo; what there was to say has been printed.
var ErrNo = errors.New("the answer is no")

// ErrRefused ends a command with ExitError; what there was to say has been printed.
var ErrRefused = errors.New("refused")

// App is what the commands share.
type App struct {
	Streams genericiooptions.IOStreams
	Config  *genericclioptions.ConfigFlags
	Name    string // as the user calls the program: satchel, or kubectl satchel
	Now     func() time.Time
	Version VersionInfo
	Pool    *worker.Pool // see workers

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

// DisplayName is how the user calls the program: kubectl runs its plugins under names that begin with kubectl-.
func DisplayName(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	if plugin, found := strings.CutPrefix(name, "kubectl-"); found && plugin != "" {
		return "kubectl " + plugin
	}
	return "satchel"
}

// ExitCode prints the error, if there is something to say, and returns the exit code.
func (a *App) ExitCode(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrNo):
		return ExitNo
	case errors.Is(err, ErrRefused):
		return ExitError
	case ctx.Err() != nil:
		fmt.Fprintln(a.Streams.ErrOut, "Interrupted.")
		return ExitInterrupted
	}
	fmt.Fprintf(a.Streams.ErrOut, "Error: %s\n", view.Printable(a.Explain(err)))
	return ExitError
}

// UsageError says what is wrong with the command line and where its help is.
func UsageError(cmd *cobra.Command, format string, args ...any) error {
	return fmt.Errorf("%s; see %s --help", fmt.Sprintf(format, args...), cmd.CommandPath())
}

// Example indents examples and calls the program as the user does.
func (a *App) Example(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		if after, found := strings.CutPrefix(line, "satchel "); found {
			line = a.Name + " " + after
		}
		if line != "" {
			lines[i] = "  " + line
		}
	}
	return strings.Join(lines, "\n")
}
