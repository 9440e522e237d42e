// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/lint"
)

// Command returns the command inspect.
func Command(a *kit.App) *cobra.Command {
	var (
		o      bundle.ConversionOptions
		format printer.Output
	)
	cmd := &cobra.Command{
		Use:     "inspect PATH|IMAGE|CHART | inspect -f FILE [PATH|IMAGE]",
		GroupID: kit.GroupPreview,
		Short:   "Show what a bundle is, what it installs and what it may do",
		Long: `Reads a bundle from a folder, from an image or, with --helm-repository, from a Helm repository, and shows what it is:
package, version and channels, install modes, objects by kind, CustomResourceDefinitions, webhooks, the permissions of its
ServiceAccounts, the images it runs, and what it requires of the cluster. Of a chart it shows name, version, app version,
subcharts, whether there is a schema for its values, and its hooks. No cluster is needed.

Permissions that can be used to gain further ones have an exclamation mark and the reason, such as reading the Secrets of
all namespaces, or granting permissions. They come first. Of each list a hundred entries are shown, and how many more
there are; -o json has all. Names in rules that could be misread are quoted; elsewhere, control characters and invisible
characters are replaced.

Without --install-namespace the bundle is shown as installed in the namespace that it suggests, or in "operators",
watching all namespaces where it can. With it, the other flags of render count too. With -f, it is shown as a
BundleDeployment installs it, from its source or from the given folder or image.

` + kit.ExitCodes,
		Example: a.Example(`
# What is in this folder?
satchel inspect ./bundle

# What may this operator do in the cluster?
satchel inspect quay.io/org/operator-bundle:v1.2.3

# A chart of a Helm repository
satchel inspect ingress --helm-repository https://charts.example.org/stable --version 4.x

# The images, for a mirror
satchel inspect ./bundle -o json | jq -r '.images[].image'

# The dangerous permissions
satchel inspect ./bundle -o json | jq '.permissions[].scopes[].rules[] | select(.danger)'`),
		RunE: func(cmd *cobra.Command, args []string) error {
			what, err := o.OneBundle(cmd, args)
			if err != nil {
				return err
			}
			return inspect(cmd.Context(), a, o, format, what)
		},
	}
	bundle.ConversionFlags(a, cmd, &o, "Namespace of the objects that name none, and of the operator.")
	bundle.NameFlag(cmd, &o)
	a.OutputFlag(cmd, &format, printer.OutputText, printer.OutputJSON, printer.OutputYAML)
	return cmd
}

func inspect(ctx context.Context, a *kit.App, o bundle.ConversionOptions, format printer.Output, what string) error {
	d, err := describeBundle(ctx, a, o, what)
	if err != nil {
		return err
	}
	if format != printer.OutputText {
		return printer.PrintValue(a.Streams.Out, format, d)
	}
	_, err = fmt.Fprint(a.Streams.Out, d.Print(printer.StyleFor(a.Streams.Out), printer.WidthOf(a.Streams.Out)))
	return err
}

// describeBundle reads a bundle and describes it.
func describeBundle(ctx context.Context, a *kit.App, o bundle.ConversionOptions, what string) (d Description, err error) {
	r, err := bundle.Open(ctx, a, &o, what)
	if err != nil {
		return Description{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	options := lint.Suitable(r.Files, o.Convert())
	result, err := bundle.Convert(ctx, a, r, options)
	if err != nil {
		return Description{}, err
	}
	var chart helm.Description
	if result.Format == convert.Helm {
		if chart, err = chartOf(ctx, a, r.Files, options); err != nil {
			return Description{}, err
		}
	}
	d = describe(cmp.Or(what, r.From), r.Files, options, result, chart)
	d.assumed = r.Options.Convert().InstallNamespace == ""
	return d, nil
}
