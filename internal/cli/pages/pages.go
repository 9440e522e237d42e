// SPDX-License-Identifier: Apache-2.0

// Package pages writes the reference pages of the command line. It is apart from the program, which needs no generator.
package pages

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/satchel-dev/satchel/internal/cli"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// Markdown writes one Markdown page for each command into dir, which is created when missing.
func Markdown(dir string) error {
	return write(dir, doc.GenMarkdownTree)
}

// Man writes one man page of section 1 for each command into dir, which is created when missing. The pages have no
// date of their own, so that they are the same from every build.
func Man(dir string) error {
	return write(dir, func(root *cobra.Command, dir string) error {
		epoch := time.Unix(0, 0).UTC()
		return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Satchel", Manual: "Satchel", Date: &epoch}, dir)
	})
}

func write(dir string, generate func(*cobra.Command, string) error) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("creating the folder of the pages: %w", err)
	}
	program := kit.Program{Path: "satchel", Now: time.Now, Streams: genericiooptions.NewTestIOStreamsDiscard()}
	if err := generate(cli.Root(program), dir); err != nil {
		return fmt.Errorf("writing the pages of the command line: %w", err)
	}
	return nil
}
