// SPDX-License-Identifier: Apache-2.0

// Package pages writes what belongs to a command line beside the program: reference pages, man pages and completions of shells.
// It is apart from the programs, which need no generator.
package pages

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Write writes all of a program below dir, in the folders cli, man and completions, which are created when missing.
func Write(root *cobra.Command, dir string) error {
	return errors.Join(
		write(root, filepath.Join(dir, "cli"), doc.GenMarkdownTree),
		write(root, filepath.Join(dir, "man"), manual),
		write(root, filepath.Join(dir, "completions"), completions),
	)
}

// manual writes one man page of section 1 for each command. The pages have no date of their own, so that they are the same
// from every build.
func manual(root *cobra.Command, dir string) error {
	epoch := time.Unix(0, 0).UTC()
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Satchel", Manual: "Satchel", Date: &epoch}, dir)
}

// completions writes one script for each shell, under the name by which the shell finds it.
func completions(root *cobra.Command, dir string) error {
	file := func(name string) string { return filepath.Join(dir, name) }
	return errors.Join(
		root.GenBashCompletionFileV2(file(root.Name()+".bash"), true),
		root.GenZshCompletionFile(file("_"+root.Name())),
		root.GenFishCompletionFile(file(root.Name()+".fish"), true),
		root.GenPowerShellCompletionFileWithDesc(file(root.Name()+".ps1")),
	)
}

func write(root *cobra.Command, dir string, generate func(*cobra.Command, string) error) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("creating the folder of the pages: %w", err)
	}
	if err := generate(root, dir); err != nil {
		return fmt.Errorf("writing the pages of the command line: %w", err)
	}
	return nil
}
