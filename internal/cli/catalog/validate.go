// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/catalog/validate"
	"github.com/satchel-dev/satchel/internal/cli/catalogs"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

func validateCommand(a *kit.App) *cobra.Command {
	var output printer.Output
	cmd := &cobra.Command{
		Use:   "validate PATH",
		Short: "Show all problems of a catalog",
		Long: `Reads a catalog in a folder or a file and shows all its problems: JSON or YAML that cannot be read, channels that name
missing bundles, several heads, cycles, entries outside of the chain of upgrades, invalid versions and skipRanges, a
missing default channel, and duplicates. A bundle in no channel is a warning, as is a deprecation of a bundle or channel
that does not exist.

A syntax error hides what follows it, so nothing else is checked then.

Exit codes:

    0    valid, perhaps with warnings
    2    invalid, or wrong use
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Before a catalog image is built
satchel catalog validate ./catalog`),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return kit.UsageError(cmd, "validate needs one folder or file, got %s", kit.Given(args))
			}
			files, root, err := catalogs.Open(args[0])
			if err != nil {
				return fmt.Errorf("catalog at %s: %w", args[0], err)
			}
			return printReport(a, args[0], validate.Files(files, root, fbc.DefaultLimits()), output)
		},
	}
	a.OutputFlag(cmd, &output, printer.OutputText, printer.OutputJSON, printer.OutputYAML)
	return cmd
}

// reportValue is the output for programs.
type reportValue struct {
	Valid    bool           `json:"valid"`
	Packages int            `json:"packages"`
	Bundles  int            `json:"bundles"`
	Problems []problemValue `json:"problems"`
}

type problemValue struct {
	Severity string `json:"severity"`
	Package  string `json:"package,omitempty"`
	Message  string `json:"message"`
}

func printReport(a *kit.App, path string, report validate.Report, output printer.Output) error {
	var err error
	if output == printer.OutputText {
		_, err = fmt.Fprint(a.Streams.Out, reportText(path, report))
	} else {
		value := reportValue{Valid: report.Errors() == 0, Packages: report.Packages, Bundles: report.Bundles, Problems: []problemValue{}}
		for _, p := range report.Problems {
			value.Problems = append(value.Problems, problemValue{Severity: string(p.Severity), Package: p.Package, Message: p.Text})
		}
		err = printer.PrintValue(a.Streams.Out, output, value)
	}
	if err == nil && report.Errors() > 0 {
		return kit.ErrRefused
	}
	return err
}

func reportText(path string, report validate.Report) string {
	var out strings.Builder
	for _, p := range report.Problems {
		of := ""
		if p.Package != "" {
			of = "package " + p.Package + ": "
		}
		fmt.Fprintf(&out, "%s: %s\n", p.Severity, view.Inline(of+p.Text))
	}
	verdict := "valid"
	if report.Errors() > 0 {
		verdict = "invalid"
	}
	if report.Incomplete {
		fmt.Fprintf(&out, "%s is %s; packages were not checked, because it could not be read to the end\n", view.Inline(path), verdict)
		return out.String()
	}
	fmt.Fprintf(&out, "%s is %s: packages: %d, bundles: %d, errors: %d, warnings: %d\n",
		view.Inline(path), verdict, report.Packages, report.Bundles, report.Errors(), len(report.Problems)-report.Errors())
	return out.String()
}
