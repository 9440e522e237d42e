// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// isTerminalInput tells whether the input is a terminal, so that a user can answer.
func isTerminalInput(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// printAdoption writes which objects would be adopted.
func printAdoption(a *kit.App, o adoptOptions, found Adoption) error {
	if o.output != printer.OutputText {
		return printer.PrintValue(a.Streams.Out, o.output, found)
	}
	var out strings.Builder
	s := printer.StyleFor(a.Streams.Out)
	table := printer.Table{Headers: []string{"OBJECT", "ACTION", "CURRENT STATE"}}
	for _, object := range found.Objects {
		if object.Action == kept {
			continue
		}
		row := table.Add(object.ID, object.Action, object.Owner)
		if object.Action == conflicting {
			row[1].Color = printer.Red
		}
	}
	if len(table.Rows) > 0 {
		out.WriteString(table.Render(s))
	}
	if own := len(found.with(kept)); own > 0 {
		fmt.Fprintf(&out, "%s of the bundle: owned by the deployment already.\n", view.Plural(own, "object"))
	}
	PrintRestarts(&out, found)
	if len(found.Former) > 0 {
		out.WriteString(s.Paint(printer.Bold, "\nFormer owners, and how to delete them and keep the objects that they own:") + "\n")
		for _, owner := range found.Former {
			out.WriteString("  " + view.Inline(owner.String()) + ": " + view.Inline(owner.Removal))
			if owner.Removable() {
				out.WriteString(" (or --delete-former)")
			}
			out.WriteByte('\n')
		}
	}
	if len(found.Leftovers) > 0 {
		out.WriteString(s.Paint(printer.Bold, "\nObjects of the former owners that are not in the bundle (--delete-leftovers deletes them):") + "\n")
		for _, l := range found.Leftovers {
			out.WriteString("  " + view.Inline(l.ID) + ", of " + view.Inline(l.Owner))
			if !l.deletable() {
				out.WriteString(" (kept: deleting it would delete all of its custom resources)")
			}
			out.WriteByte('\n')
		}
	}
	if len(found.with(conflicting)) > 0 {
		out.WriteString("\nNothing was adopted: objects belong to another BundleDeployment, and two never share an object. Remove them from one of the two;\n" +
			"if the other one does not exist any more, remove its labels from the objects, and annotate them with satchel.dev/orphaned: \"true\".\n")
	}
	if _, err := io.WriteString(a.Streams.Out, out.String()); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	a.Note(found.Notes)
	return nil
}

// PrintRestarts says which Pods are replaced.
func PrintRestarts(out *strings.Builder, found Adoption) {
	if len(found.Restarts) == 0 {
		if len(found.with(Adopted)) > 0 && len(found.Notes) == 0 {
			out.WriteString("\nNo Pod restarts.\n")
		}
		return
	}
	out.WriteString("\nPods restart:\n")
	for _, workload := range found.Restarts {
		out.WriteString("  " + view.Inline(workload.ID) + ":\n")
		for _, why := range workload.Because {
			out.WriteString("    " + view.Bounded(why) + "\n")
		}
	}
	options := found.ToKeep()
	if len(options) == 0 {
		return
	}
	text, err := printer.YamlText(map[string]any{"spec": map[string]any{"registryV1": options}})
	if err != nil {
		return // what was read as JSON can be written
	}
	out.WriteString("\nThese options avoid the restart. Remove them with the next upgrade:\n")
	for line := range strings.Lines(string(text)) {
		out.WriteString("  " + line)
	}
}
