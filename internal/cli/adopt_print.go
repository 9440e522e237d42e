// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// isTerminalInput tells whether the input is a terminal, so that a user can answer.
func isTerminalInput(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// printAdoption writes what would be taken over.
func (a *app) printAdoption(o adoptOptions, found adoption) error {
	if o.output != outputText {
		return printValue(a.streams.Out, o.output, found)
	}
	var out strings.Builder
	s := styleFor(a.streams.Out)
	table := table{headers: []string{"OBJECT", "WHAT HAPPENS", "NOW"}}
	for _, object := range found.Objects {
		if object.Action == kept {
			continue
		}
		row := table.add(object.ID, object.Action, object.Owner)
		if object.Action == inTheWay {
			row[1].color = red
		}
	}
	if len(table.rows) > 0 {
		out.WriteString(table.render(s))
	}
	if own := len(found.with(kept)); own > 0 {
		fmt.Fprintf(&out, "%s of the bundle: the deployment's already.\n", plural(own, "object"))
	}
	printRestarts(&out, found)
	if len(found.Former) > 0 {
		out.WriteString(s.paint(bold, "\nFormer owners, and how to remove them without the objects that they own:") + "\n")
		for _, owner := range found.Former {
			out.WriteString("  " + inline(owner.String()) + ": " + inline(owner.Removal))
			if owner.removable() {
				out.WriteString(" (or --delete-former)")
			}
			out.WriteByte('\n')
		}
	}
	if len(found.Leftovers) > 0 {
		out.WriteString(s.paint(bold, "\nLeft over, not in the bundle (--delete-leftovers deletes it):") + "\n")
		for _, l := range found.Leftovers {
			out.WriteString("  " + inline(l.ID) + ", of " + inline(l.Owner))
			if !l.deletable() {
				out.WriteString(" (stays: all resources of its kind would go with it)")
			}
			out.WriteByte('\n')
		}
	}
	if len(found.with(inTheWay)) > 0 {
		out.WriteString("\nNothing is taken over: what is in the way belongs to another BundleDeployment, and two never share an object. Remove it from one of the two;\n" +
			"if the other one is gone for good, take its labels off the object, and annotate it with satchel.dev/orphaned: \"true\".\n")
	}
	if _, err := io.WriteString(a.streams.Out, out.String()); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	a.note(found.Notes)
	return nil
}

// printRestarts says which Pods are replaced.
func printRestarts(out *strings.Builder, found adoption) {
	if len(found.Restarts) == 0 {
		if len(found.with(takenOver)) > 0 && len(found.Notes) == 0 {
			out.WriteString("\nNo Pod restarts.\n")
		}
		return
	}
	out.WriteString("\nPods restart:\n")
	for _, workload := range found.Restarts {
		out.WriteString("  " + inline(workload.ID) + ":\n")
		for _, why := range workload.Because {
			out.WriteString("    " + bounded(why) + "\n")
		}
	}
	options := found.toKeep()
	if len(options) == 0 {
		return
	}
	text, err := yamlText(map[string]any{"spec": map[string]any{"registryV1": options}})
	if err != nil {
		return // what was read as JSON can be written
	}
	out.WriteString("\nThis keeps of the running Pods what the bundle does not have, until the next upgrade:\n")
	for line := range strings.Lines(string(text)) {
		out.WriteString("  " + line)
	}
}
