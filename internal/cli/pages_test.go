// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/tests/docs/markdown"
)

// TestPagesParse parses the flags of each satchel command line in README and docs, including blocks that tests/docs leaves
// out.
func TestPagesParse(t *testing.T) {
	seen := 0
	repository := os.DirFS("../..")
	err := fs.WalkDir(repository, "docs", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".md") {
			seen += parsePage(t, repository, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen += parsePage(t, repository, "README.md"); seen < 50 {
		t.Errorf("only %d command lines were found", seen)
	}
}

// parsePage counts the command lines of a page.
func parsePage(t *testing.T, repository fs.FS, name string) int {
	t.Helper()
	text, err := fs.ReadFile(repository, name)
	if err != nil {
		t.Fatal(err)
	}
	page, err := markdown.Parse(name, string(text))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, step := range page.Steps {
		for _, line := range commandLines(step) {
			seen++
			if err := parseLine(line); err != nil {
				t.Errorf("%s: satchel %s: %v", step, line, err)
			}
		}
	}
	return seen
}

// invocation is where satchel is called in a line of a shell.
var invocation = regexp.MustCompile(`(?:^|[|;&(] *|\$ )satchel ([^|;&#>)]*)`)

// commandLines are the arguments of satchel in a block.
func commandLines(step markdown.Step) []string {
	if step.Language != "sh" && step.Language != "console" {
		return nil
	}
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(step.Text, "\\\n", " "), "\n") {
		if step.Language == "console" && !strings.HasPrefix(line, "$ ") {
			continue
		}
		for _, found := range invocation.FindAllStringSubmatch(line, -1) {
			lines = append(lines, strings.TrimSpace(found[1]))
		}
	}
	return lines
}

// parseLine finds the command of a command line, and its flags.
func parseLine(line string) error {
	fields := strings.Fields(strings.TrimSuffix(line, " 2"))
	named, rest, err := rootCommand(testApp(&bytes.Buffer{})).Find(fields)
	if err != nil {
		return err
	}
	if !named.HasParent() && !strings.HasPrefix(fields[0], "-") {
		return fmt.Errorf("there is no such command")
	}
	if err := named.ParseFlags(rest); !errors.Is(err, pflag.ErrHelp) {
		return err
	}
	return nil
}

func TestPageLines(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, line string
		broken       bool
	}{
		"right":      {"the command and the flag exist", "get -n shop -o yaml", false},
		"below":      {"commands below commands", "debug dump -o x", false},
		"no command": {"it was renamed", "fetch web", true},
		"no flag":    {"it was renamed", "get --name-space x", true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := parseLine(tc.line); (err != nil) != tc.broken {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	step := markdown.Step{Language: "sh", Text: "satchel rbac ./x | kubectl apply -f - && satchel get > x # satchel no\n"}
	if got := strings.Join(commandLines(step), ";"); got != "rbac ./x;get" {
		t.Errorf("got %q", got)
	}
}
