// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
)

// foundValue is a package in the output for programs.
type foundValue struct {
	Package string `json:"package"`
	Catalog string `json:"catalog"`
}

func searchCommand(a *kit.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "search [WORD]",
		Short: "Find packages by name",
		Long: `Lists the packages of all catalogs with a name that contains the word, in upper or lower case; without a word it lists all
packages. If there is none, the exit code is 1.

Exit codes:

    0    found
    1    not found
    2    failed: wrong use, a catalog that cannot be read
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Packages named after Argo
satchel catalog search argo --catalog community=./catalog`),
		ValidArgsFunction: cobra.NoFileCompletions, // any word is possible
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return kit.UsageError(cmd, "search needs at most one word, got %s", kit.Given(args))
			}
			if err := o.catalogs.Parse(cmd); err != nil {
				return err
			}
			found, err := o.search(cmd.Context(), a, strings.Join(args, ""))
			if err != nil {
				return err
			}
			return printFound(a, found, o.output)
		},
	}
	o.flags(a, cmd, printer.OutputTable, printer.OutputJSON, printer.OutputYAML)
	return cmd
}

// search finds packages, in the order of their names and then of the catalogs.
func (o *options) search(ctx context.Context, a *kit.App, word string) (found []foundValue, err error) {
	set, err := o.catalogs.Open(ctx, a)
	defer func() { err = errors.Join(err, set.Close()) }()
	if err != nil {
		return nil, err
	}
	listed, err := set.List(ctx)
	if err != nil {
		return nil, err
	}
	found = []foundValue{}
	for _, l := range listed {
		a.Note(l.Problems)
		for _, name := range l.Packages {
			if strings.Contains(strings.ToLower(name), strings.ToLower(word)) {
				found = append(found, foundValue{Package: name, Catalog: l.Catalog})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b foundValue) int { return strings.Compare(a.Package, b.Package) })
	return found, nil
}

func printFound(a *kit.App, found []foundValue, output printer.Output) error {
	if output != printer.OutputTable {
		if err := printer.PrintValue(a.Streams.Out, output, found); err != nil {
			return err
		}
	} else if len(found) > 0 {
		table := printer.Table{Headers: []string{"PACKAGE", "CATALOG"}}
		for _, f := range found {
			addRow(&table, f.Package, f.Catalog)
		}
		if _, err := fmt.Fprint(a.Streams.Out, table.Render(printer.StyleFor(a.Streams.Out))); err != nil {
			return err
		}
	}
	if len(found) == 0 {
		a.Note([]string{"no package has a name that contains the word"})
		return kit.ErrNo
	}
	return nil
}
