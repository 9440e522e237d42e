// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/check"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// dumpOptions are the flags of debug dump.
type dumpOptions struct {
	file       string
	namespace  string // of the controllers
	everywhere bool
}

const dumpExitCodes = `Exit codes:

    0    written (what could not be read is listed)
    2    failed: no access to the cluster, the file cannot be written or exists
    130  interrupted by Ctrl-C; no file is left`

// DebugCommand returns the command debug.
func DebugCommand(a *kit.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "debug",
		GroupID:           kit.GroupOperate,
		Short:             "Collect diagnostics for support",
		Long:              "Collects diagnostics for support: see debug dump.\n\n" + dumpExitCodes,
		Example:           a.Example("\n# Everything about Satchel in this cluster, without secrets\nsatchel debug dump -o satchel.tar.gz"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return kit.UsageError(cmd, "there is no command %q; there is dump", args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(dumpCommand(a))
	return cmd
}

func dumpCommand(a *kit.App) *cobra.Command {
	o := dumpOptions{everywhere: true}
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Write a support bundle: diagnostics of Satchel in an archive, without secrets",
		Long: `Writes an archive (.tar.gz) with all Satchel objects (their inventories decoded), the events about them, and of the
controllers the Deployments, Pods, leases, network policies, events, logs and metrics, the CRDs without schemas, and the
findings of check. It is read with your permissions; what could not be read is listed in its README.txt.

Secrets and ConfigMaps are not read. The following is removed: values of annotations and environment variables, inline
values and patches, logins and queries in URLs, private keys, and strings that look like a token or password. Names of
objects, images and hosts stay. Review the archive before you share it.

A file in it has at most 8 MiB, and all of them 256 MiB.

` + dumpExitCodes,
		Example: a.Example(`
# All namespaces
satchel debug dump -o satchel.tar.gz

# Only the objects of one namespace, and the controllers
satchel debug dump -n demo --all-namespaces=false`),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return kit.UsageError(cmd, "debug dump takes no arguments, got %s", kit.Given(args))
			}
			return dump(cmd.Context(), a, o)
		},
	}
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "The file to write; satchel-TIME.tar.gz if left out.")
	cmd.Flags().StringVar(&o.namespace, "system-namespace", kit.SystemNamespace, "Where the controllers are.")
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", true, "Objects of all namespaces.")
	a.CompleteFlag(cmd, "system-namespace", a.CompleteNamespaces)
	return cmd
}

// dumper collects into an archive.
type dumper struct {
	*check.Examiner
	archive    *Archive
	everywhere bool
	taken      []string
}

// take notes what was taken.
func (d *dumper) take(format string, args ...any) {
	d.taken = append(d.taken, fmt.Sprintf(format, args...))
}

func dump(ctx context.Context, a *kit.App, o dumpOptions) error {
	if o.file == "" {
		o.file = "satchel-" + a.Now().UTC().Format("20060102-150405") + ".tar.gz"
	}
	e, err := check.NewExaminer(a, o.namespace)
	if err != nil {
		return err
	}
	if err := e.Examine(ctx, false); err != nil {
		return err
	}
	file, err := NewArchive(o.file, a.Now())
	if err != nil {
		return err
	}
	defer file.Drop()
	d := &dumper{Examiner: e, archive: file, everywhere: o.everywhere}
	for _, collect := range []func(context.Context) error{d.summary, d.objects, d.events, d.crds, d.system, d.logs, d.metrics} {
		fmt.Fprint(a.Streams.ErrOut, map[bool]string{true: "."}[printer.IsTerminal(a.Streams.ErrOut)])
		if err := collect(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	fmt.Fprint(a.Streams.ErrOut, map[bool]string{true: "\n"}[printer.IsTerminal(a.Streams.ErrOut)])
	if err := d.readme(a.Version); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	reportDump(a, o.file, d)
	return nil
}

// reportDump says what was taken and what could not be read.
func reportDump(a *kit.App, file string, d *dumper) {
	fmt.Fprintf(a.Streams.Out, "%s: %s, %s before compression\n", view.Inline(file), view.Plural(d.archive.files, "file"), printer.BytesText(d.archive.Written))
	for _, line := range d.taken {
		fmt.Fprintf(a.Streams.Out, "  %s\n", view.Inline(line))
	}
	for _, line := range d.Omitted.List() {
		fmt.Fprintf(a.Streams.ErrOut, "Could not be read: %s\n", view.Bounded(printer.RedactText(line)))
	}
}

// readme says in the archive what is in it.
func (d *dumper) readme(version kit.VersionInfo) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Written by satchel %s (%s) at %s.\n\nTaken:\n", version.Version, version.Platform, d.Now.UTC().Format("2006-01-02 15:04:05Z"))
	for _, line := range d.taken {
		fmt.Fprintf(&text, "- %s\n", view.Inline(line))
	}
	fmt.Fprint(&text, "\nCould not be read:\n")
	for _, line := range d.Omitted.List() {
		fmt.Fprintf(&text, "- %s\n", view.Inline(printer.RedactText(line)))
	}
	fmt.Fprintf(&text, "\n%s replaces values that may be secret. Secrets and ConfigMaps were not read.\n", printer.Redacted)
	return d.archive.Add("README.txt", []byte(text.String()))
}
