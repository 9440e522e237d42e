// SPDX-License-Identifier: Apache-2.0

package clirig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/tests/docs/markdown"
	"github.com/satchel-dev/satchel/tests/installation"
)

// AllCommands are a command and all below it.
func AllCommands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		all = append(all, AllCommands(below)...)
	}
	return all
}

// CheckHelp checks that each command has a description, examples and exit codes, and that each flag with a few allowed values
// has completion.
func CheckHelp(t *testing.T, root *cobra.Command) {
	t.Helper()
	for _, cmd := range AllCommands(root) {
		if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" {
			t.Errorf("%s lacks Short, Long or Example", cmd.CommandPath())
		}
		if cmd.Name() != "completion" && !strings.Contains(cmd.Long, "Exit codes:") {
			t.Errorf("%s does not tell its exit codes", cmd.CommandPath())
		}
		if cmd != root && cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !strings.Contains(cmd.Use, "PATH|IMAGE") {
			t.Errorf("%s completes no arguments", cmd.CommandPath())
		}
		for _, line := range strings.Split(cmd.Long+"\n"+cmd.Example, "\n") {
			if len([]rune(line)) > 122 {
				t.Errorf("%s: a line of the help is too long: %s", cmd.CommandPath(), line)
			}
		}
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			_, completed := cmd.GetFlagCompletionFunc(flag.Name)
			if strings.Contains(flag.Usage, "One of:") && !completed {
				t.Errorf("%s --%s is not completed", cmd.CommandPath(), flag.Name)
			}
		})
	}
	for _, flag := range []string{"namespace", "context"} {
		if _, completed := root.GetFlagCompletionFunc(flag); !completed {
			t.Errorf("--%s is not completed", flag)
		}
	}
}

// CheckExamples runs the command line of each example of a program as far as its flags, and returns how many there are.
func CheckExamples(t *testing.T, root func() *cobra.Command, program string) int {
	t.Helper()
	seen := 0
	for _, cmd := range AllCommands(root()) {
		for _, line := range (markdown.Step{Language: "sh", Text: unindented(cmd.Example)}).CommandLines(program) {
			seen++
			if err := ParseLine(root(), line); err != nil {
				t.Errorf("%s: %s %s: %v", cmd.CommandPath(), program, line, err)
			}
		}
	}
	return seen
}

// unindented is a text without the indentation of its lines.
func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

// ParseLine finds the command of a command line, and its flags.
func ParseLine(root *cobra.Command, line string) error {
	fields := strings.Fields(strings.TrimSuffix(line, " 2"))
	named, rest, err := root.Find(fields)
	if err != nil {
		return err
	}
	if !named.HasParent() && !strings.HasPrefix(fields[0], "-") || named.Hidden {
		return fmt.Errorf("there is no such command")
	}
	named.InitDefaultVersionFlag() // as cobra does before it parses
	if err := named.ParseFlags(rest); !errors.Is(err, pflag.ErrHelp) {
		return err
	}
	return nil
}

// CheckPages parses the flags of each command line of a program in README and docs, including blocks that tests/docs leaves
// out, and returns how many there are.
func CheckPages(t *testing.T, root func() *cobra.Command, program string) int {
	t.Helper()
	repository := os.DirFS(installation.Root())
	names := []string{"README.md"}
	err := fs.WalkDir(repository, "docs", func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, ".md") {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range names {
		text, err := fs.ReadFile(repository, name)
		if err != nil {
			t.Fatal(err)
		}
		page, err := markdown.Parse(name, string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range page.Steps {
			for _, line := range step.CommandLines(program) {
				seen++
				if err := ParseLine(root(), line); err != nil {
					t.Errorf("%s: %s %s: %v", step, program, line, err)
				}
			}
		}
	}
	return seen
}
