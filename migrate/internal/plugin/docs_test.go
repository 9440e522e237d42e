// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/tests/clirig"
)

func testRoot() *cobra.Command { return Root(kit.Program{Path: File}) }

// TestEveryCommandExplainsItself checks descriptions, examples, exit codes and completion.
func TestEveryCommandExplainsItself(t *testing.T) {
	clirig.CheckHelp(t, testRoot())
}

// TestExamplesParse runs the command line of each example as far as its flags.
func TestExamplesParse(t *testing.T) {
	if seen := clirig.CheckExamples(t, testRoot, display); seen < 10 {
		t.Errorf("only %d examples were found", seen)
	}
}

// TestPagesParse parses the flags of each command line in README and docs.
func TestPagesParse(t *testing.T) {
	if seen := clirig.CheckPages(t, testRoot, display); seen < 10 {
		t.Errorf("only %d command lines were found", seen)
	}
}

// TestLimitFlags: adopt converts bundles, and has the flags of the controllers for what their manifests may be.
func TestLimitFlags(t *testing.T) {
	limits := convert.DefaultLimits()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	limits.BindFlags(flags)
	help := migrate(t, "adopt", "--help").Out
	flags.VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(help, "--"+f.Name) {
			t.Errorf("adopt has no --%s", f.Name)
		}
	})
}

// TestProgram checks what the root command says, refuses and completes.
func TestProgram(t *testing.T) {
	for _, tc := range []struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		{"its version", []string{"--version"}, kit.ExitOK, "kubectl satchel-migrate v0.0.0-test (go1.26.0, linux/amd64)\n"},
		{"as users call it", []string{"adopt", "--help"}, kit.ExitOK, "Usage:\n  kubectl satchel-migrate adopt [deployment] NAME [flags]\n"},
		{"no command", nil, kit.ExitOK, "Available Commands:\n"},
		{"a typing error", []string{"manifest"}, kit.ExitError, `there is no command "manifest"; did you mean manifests?; see kubectl satchel-migrate --help`},
		{"the former name", []string{"migrate"}, kit.ExitError, `there is no command "migrate"; see kubectl satchel-migrate --help`},
		{"no such flag", []string{"adopt", "--foo"}, kit.ExitError, "unknown flag: --foo; see kubectl satchel-migrate adopt --help"},
		{"commands are completed", []string{"__complete", ""}, kit.ExitOK, "manifests\tTranslate"},
		{"files are completed", []string{"__complete", "manifests", ""}, kit.ExitOK, "yaml\n"},
		{"completion by kubectl", []string{"completion", "--help"}, kit.ExitOK, "    exec kubectl satchel-migrate __complete \"$@\"\n"},
		{"the file that kubectl looks for", []string{"completion", "--help"}, kit.ExitOK, "\nkubectl_complete-satchel_migrate with the two lines"},
		{"completion by the shell", []string{"completion", "bash"}, kit.ExitOK, "kubectl-satchel_migrate"},
	} {
		if got := migrate(t, tc.args...); got.Code != tc.code || !strings.Contains(got.Out+got.Err, tc.want) {
			t.Errorf("%s: %q with exit code %d is missing in %s", tc.reason, tc.want, tc.code, got)
		}
	}
}
