// SPDX-License-Identifier: Apache-2.0

// Program pages writes the reference pages of the command line: Markdown into OUT/cli, man pages into OUT/man.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/satchel-dev/satchel/internal/cli/pages"
)

func main() {
	out := flag.String("out", "dist/pages", "the folder to write into")
	flag.Parse()
	if err := errors.Join(pages.Markdown(filepath.Join(*out, "cli")), pages.Man(filepath.Join(*out, "man"))); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
