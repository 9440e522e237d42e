// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// options are the flags of artifact.
type options struct {
	dir, revision string
	output        printer.Output
}

// Command returns the command artifact.
func Command(a *kit.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "artifact [deployment|source] NAME [PATH]",
		GroupID: kit.GroupPreview,
		Short:   "List or download the files of an artifact in the cluster",
		Long: `Downloads the artifact that a BundleSource publishes, or that the source of a BundleDeployment publishes, verifies its
digests, and lists its files. With PATH it prints that file, and with --dir it writes all files into a new folder. An
artifact holds names and contents only: permissions and times of files are not part of it.

--revision selects an earlier revision from the history of a BundleDeployment, as far as it is stored: by its digest or
origin, or "previous".

You need permission to get bundledeployments and bundlesources, and services/proxy of the source controller's Service in
its namespace, because the API server forwards the download. That permission is for all tenants' artifacts.

Exit codes:

    0    done
    2    failed: not found, nothing published, no access, a wrong digest
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# Which files does it hold?
satchel artifact podinfo -n demo

# One of them
satchel artifact podinfo manifests/deployment.yaml -n demo

# All files of a source
satchel artifact source podinfo -n demo --dir ./podinfo`),
		ValidArgsFunction: a.CompleteTargets(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, path, err := o.parse(cmd, args)
			if err != nil {
				return err
			}
			return run(cmd.Context(), a, o, t, path)
		},
	}
	cmd.Flags().StringVar(&o.dir, "dir", "", "Folder to write all files into; it must be new or empty.")
	cmd.Flags().StringVar(&o.revision, "revision", "", "Revision from the history of the BundleDeployment; without it, the current one of its source.")
	a.OutputFlag(cmd, &o.output, printer.OutputText, printer.OutputJSON, printer.OutputYAML, printer.OutputName)
	_ = cmd.MarkFlagDirname("dir") // it only fails for a flag that does not exist
	return cmd
}

// parse reads [KIND] NAME [PATH] and KIND/NAME [PATH], and refuses flags that have no effect together.
func (o options) parse(cmd *cobra.Command, args []string) (t kit.Target, path string, err error) {
	names := args
	if len(names) > 0 {
		if _, isKind := kit.KindNamed(names[0]); isKind {
			names = names[1:]
		}
	}
	if len(names) != 1 && len(names) != 2 {
		return t, "", kit.UsageError(cmd, "artifact needs the name of one object, and at most one path of a file; got %s", kit.Given(args))
	}
	if len(names) == 2 {
		if path = strings.TrimPrefix(names[1], "./"); !fs.ValidPath(path) {
			return t, "", kit.UsageError(cmd, "%q is no path of a file in an artifact: give it as satchel artifact %s lists it", names[1], names[0])
		}
		args = args[:len(args)-1]
	}
	t = kit.ParseTargets(args)[0]
	switch {
	case path != "" && (o.dir != "" || cmd.Flag("output").Changed):
		return t, "", kit.UsageError(cmd, "PATH prints one file as it is: leave --dir and -o out")
	case t.Kind.Name == kit.Catalogs.Name:
		return t, "", kit.UsageError(cmd, "a BundleCatalog has no artifact: see it with the command catalog")
	case o.revision != "" && t.Kind.Name != kit.Deployments.Name:
		return t, "", kit.UsageError(cmd, "--revision selects from the history of a BundleDeployment: name one in place of the %s", t.Kind.Word)
	}
	return t, path, nil
}

func run(ctx context.Context, a *kit.App, o options, t kit.Target, path string) (err error) {
	opened, err := open(ctx, a, t, o.revision)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	if path != "" {
		return opened.printFile(a, path)
	}
	held, err := opened.list(ctx)
	if err != nil {
		return err
	}
	if o.dir != "" {
		if err := opened.writeInto(ctx, o.dir, &held); err != nil {
			return err
		}
	}
	switch o.output {
	case printer.OutputName:
		for _, file := range held.Files {
			fmt.Fprintln(a.Streams.Out, view.Inline(file.Path))
		}
		return nil
	case printer.OutputJSON, printer.OutputYAML:
		return printer.PrintValue(a.Streams.Out, o.output, held)
	}
	_, err = fmt.Fprint(a.Streams.Out, held.text(printer.StyleFor(a.Streams.Out), printer.WidthOf(a.Streams.Out)))
	return err
}
