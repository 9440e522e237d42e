// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/pages"
)

// TestPagesAreWritten checks that every command has a Markdown page and a man page, and that each shell has its completions.
func TestPagesAreWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pages")
	if err := pages.Write(cli.Root(kit.Program{Path: "satchel"}), dir); err != nil {
		t.Fatal(err)
	}
	for ending, folder := range map[string]string{".md": "cli", ".1": "man"} {
		for _, cmd := range commands(cli.Root(kit.Program{Path: "satchel"})) {
			name := strings.ReplaceAll(cmd.CommandPath(), " ", map[string]string{".md": "_", ".1": "-"}[ending]) + ending
			text, err := os.ReadFile(filepath.Join(dir, folder, name))
			if err != nil || !strings.Contains(string(text), cmd.Short) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, name := range []string{"satchel.bash", "_satchel", "satchel.fish", "satchel.ps1"} {
		text, err := os.ReadFile(filepath.Join(dir, "completions", name))
		if err != nil || !strings.Contains(string(text), "__complete") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// commands are a command and all below it that are not hidden.
func commands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			all = append(all, commands(below)...)
		}
	}
	return all
}
