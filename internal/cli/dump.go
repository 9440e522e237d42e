// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
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

func (a *app) debugCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "debug",
		GroupID:           groupOperate,
		Short:             "Collect diagnostics for support",
		Long:              "Collects diagnostics for support: see debug dump.\n\n" + dumpExitCodes,
		Example:           a.example("\n# Everything about Satchel in this cluster, without secrets\nsatchel debug dump -o satchel.tar.gz"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError(cmd, "there is no command %q; there is dump", args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(a.dumpCommand())
	return cmd
}

func (a *app) dumpCommand() *cobra.Command {
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
		Example: a.example(`
# All namespaces
satchel debug dump -o satchel.tar.gz

# Only the objects of one namespace, and the controllers
satchel debug dump -n demo --all-namespaces=false`),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError(cmd, "debug dump takes no arguments, got %s", given(args))
			}
			return a.dump(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "The file to write; satchel-TIME.tar.gz if left out.")
	cmd.Flags().StringVar(&o.namespace, "system-namespace", systemNamespace, "Where the controllers are.")
	cmd.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", true, "Objects of all namespaces.")
	a.completeFlag(cmd, "system-namespace", a.completeNamespaces)
	return cmd
}

// dumper collects into an archive.
type dumper struct {
	*examiner
	archive    *archive
	everywhere bool
	taken      []string
}

// take notes what was taken.
func (d *dumper) take(format string, args ...any) {
	d.taken = append(d.taken, fmt.Sprintf(format, args...))
}

func (a *app) dump(ctx context.Context, o dumpOptions) error {
	if o.file == "" {
		o.file = "satchel-" + a.now().UTC().Format("20060102-150405") + ".tar.gz"
	}
	e, err := a.newExaminer(o.namespace)
	if err != nil {
		return err
	}
	if err := e.examine(ctx, false); err != nil {
		return err
	}
	file, err := newArchive(o.file, a.now())
	if err != nil {
		return err
	}
	defer file.drop()
	d := &dumper{examiner: e, archive: file, everywhere: o.everywhere}
	for _, collect := range []func(context.Context) error{d.summary, d.objects, d.events, d.crds, d.system, d.logs, d.metrics} {
		fmt.Fprint(a.streams.ErrOut, map[bool]string{true: "."}[isTerminal(a.streams.ErrOut)])
		if err := collect(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	fmt.Fprint(a.streams.ErrOut, map[bool]string{true: "\n"}[isTerminal(a.streams.ErrOut)])
	if err := d.readme(a.version); err != nil {
		return err
	}
	if err := file.close(); err != nil {
		return err
	}
	a.reportDump(o.file, d)
	return nil
}

// reportDump says what was taken and what could not be read.
func (a *app) reportDump(file string, d *dumper) {
	fmt.Fprintf(a.streams.Out, "%s: %s, %s before compression\n", inline(file), plural(d.archive.files, "file"), bytesText(d.archive.written))
	for _, line := range d.taken {
		fmt.Fprintf(a.streams.Out, "  %s\n", inline(line))
	}
	for _, line := range d.omitted.list() {
		fmt.Fprintf(a.streams.ErrOut, "Could not be read: %s\n", bounded(redactText(line)))
	}
}

// readme says in the archive what is in it.
func (d *dumper) readme(version VersionInfo) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Written by satchel %s (%s) at %s.\n\nTaken:\n", version.Version, version.Platform, d.now.UTC().Format("2006-01-02 15:04:05Z"))
	for _, line := range d.taken {
		fmt.Fprintf(&text, "- %s\n", inline(line))
	}
	fmt.Fprint(&text, "\nCould not be read:\n")
	for _, line := range d.omitted.list() {
		fmt.Fprintf(&text, "- %s\n", inline(redactText(line)))
	}
	fmt.Fprintf(&text, "\n%s replaces values that may be secret. Secrets and ConfigMaps were not read.\n", redacted)
	return d.archive.add("README.txt", []byte(text.String()))
}
