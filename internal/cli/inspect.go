// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/lint"
)

func (a *app) inspectCommand() *cobra.Command {
	var (
		o      conversionOptions
		format output
	)
	cmd := &cobra.Command{
		Use:     "inspect PATH|IMAGE",
		GroupID: groupPreview,
		Short:   "Show what a bundle is, what it installs and what it may do",
		Long: `Reads a bundle from a folder or from an image and shows what it is: package, version and channels, install modes,
objects by kind, CustomResourceDefinitions, webhooks, the permissions of its ServiceAccounts, the images it runs, and what
it requires of the cluster. Of a chart it shows name, version, app version, subcharts, whether there is a schema for its
values, and its hooks. No cluster is needed.

Permissions that can be used to gain further ones have an exclamation mark and the reason, such as reading the Secrets of
all namespaces, or granting permissions. They come first. Of each list a hundred entries are shown, and how many more
there are; -o json has all. Names in rules that could be misread are quoted; elsewhere, control characters and invisible
characters are replaced.

Without --install-namespace the bundle is shown as installed in the namespace that it suggests, or in "operators",
watching all namespaces where it can. With it, the other flags of render count too.

` + exitCodes,
		Example: a.example(`
# What is in this folder?
satchel inspect ./bundle

# What may this operator do in the cluster?
satchel inspect quay.io/org/operator-bundle:v1.2.3

# The images, for a mirror
satchel inspect ./bundle -o json | jq -r '.images[].image'

# The dangerous permissions
satchel inspect ./bundle -o json | jq '.permissions[].scopes[].rules[] | select(.danger)'`),
		RunE: func(cmd *cobra.Command, args []string) error {
			what, err := oneBundle(cmd, args)
			if err != nil {
				return err
			}
			return a.inspect(cmd.Context(), o, format, what)
		},
	}
	a.conversionFlags(cmd, &o, "Namespace of the objects that name none, and of the operator.")
	a.outputFlag(cmd, &format, outputText, outputJSON, outputYAML)
	return cmd
}

func (a *app) inspect(ctx context.Context, o conversionOptions, format output, what string) error {
	d, err := a.describeBundle(ctx, o, what)
	if err != nil {
		return err
	}
	if format != outputText {
		return printValue(a.streams.Out, format, d)
	}
	_, err = fmt.Fprint(a.streams.Out, d.print(styleFor(a.streams.Out), widthOf(a.streams.Out)))
	return err
}

// describeBundle reads a bundle and describes it.
func (a *app) describeBundle(ctx context.Context, o conversionOptions, what string) (d description, err error) {
	r, err := a.open(ctx, &o, what)
	if err != nil {
		return description{}, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	options := lint.Suitable(r.files, o.convert())
	result, err := a.convert(ctx, r, options)
	if err != nil {
		return description{}, err
	}
	var chart helm.Description
	if result.Format == convert.Helm {
		if chart, err = a.chartOf(ctx, r.files, options); err != nil {
			return description{}, err
		}
	}
	d = describe(what, r.files, options, result, chart)
	d.assumed = o.installNamespace == ""
	return d, nil
}
