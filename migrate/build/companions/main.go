// SPDX-License-Identifier: Apache-2.0

// Program companions writes what belongs to the plugin beside the program: reference pages into OUT/cli, man pages into
// OUT/man, and completions of shells into OUT/completions.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/pages"
	"github.com/satchel-dev/satchel/migrate/internal/plugin"
)

func main() {
	out := flag.String("out", "dist/pages", "the folder to write into")
	flag.Parse()
	if err := pages.Write(plugin.Root(kit.Program{Path: plugin.File}), *out); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
