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

// TestPagesAreWritten checks that every command has a Markdown page and a man page.
func TestPagesAreWritten(t *testing.T) {
	for ending, write := range map[string]func(string) error{".md": pages.Markdown, ".1": pages.Man} {
		dir := filepath.Join(t.TempDir(), "pages")
		if err := write(dir); err != nil {
			t.Fatal(err)
		}
		for _, cmd := range commands(cli.Root(kit.Program{Path: "satchel"})) {
			name := strings.ReplaceAll(cmd.CommandPath(), " ", map[string]string{".md": "_", ".1": "-"}[ending]) + ending
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !strings.Contains(string(text), cmd.Short) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// commands are a command and all below it.
func commands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		all = append(all, commands(below)...)
	}
	return all
}
