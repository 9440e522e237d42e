// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"testing"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/tests/clirig"
)

func testRoot() *cobra.Command { return rootCommand(testApp(&bytes.Buffer{})) }

// TestPagesParse parses the flags of each satchel command line in README and docs.
func TestPagesParse(t *testing.T) {
	if seen := clirig.CheckPages(t, testRoot, "satchel"); seen < 50 {
		t.Errorf("only %d command lines were found", seen)
	}
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
		"elsewhere":  {"it is in the plugin", "adopt web", true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := clirig.ParseLine(testRoot(), tc.line); (err != nil) != tc.broken {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
