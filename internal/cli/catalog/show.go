// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/graph"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/resolver"
	"github.com/satchel-dev/satchel/internal/view"
)

func showCommand(a *kit.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "show PACKAGE [VERSION]",
		Short: "Show a package with its channels and bundles, or one bundle",
		Long: `Shows the channels of a package with their heads, its bundles with versions and images, the newest first, and
deprecations. With a version or the name of a bundle it shows that bundle only.

If several catalogs have the package, the one with the highest priority is shown.

` + exitCodes,
		Example: a.Example(`
# A package
satchel catalog show argocd-operator --catalog community=./catalog

# The image of one version
satchel catalog show argocd-operator 0.11.0 --catalog community=./catalog -o json | jq -r '.bundles[].image'`),
		ValidArgsFunction: cobra.NoFileCompletions, // reading a large catalog takes seconds
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 || slices.Contains(args, "") {
				return kit.UsageError(cmd, "show needs a package, and perhaps a version, got %s", kit.Given(args))
			}
			c, err := o.read(a, cmd, args[0])
			if err != nil {
				return err
			}
			value, err := shown(c, args[1:])
			if err != nil {
				return err
			}
			if o.output != printer.OutputText {
				return printer.PrintValue(a.Streams.Out, o.output, value)
			}
			_, err = fmt.Fprint(a.Streams.Out, value.text(printer.StyleFor(a.Streams.Out)))
			return err
		},
	}
	o.flags(a, cmd, printer.OutputText, printer.OutputJSON, printer.OutputYAML)
	return cmd
}

// showValue is the output for programs. The channels are those that have one of the bundles.
type showValue struct {
	Catalog        string        `json:"catalog"`
	Package        string        `json:"package"`
	DefaultChannel string        `json:"defaultChannel"`
	Deprecated     *string       `json:"deprecated,omitempty"` // the message
	Channels       []headsValue  `json:"channels"`
	Bundles        []bundleValue `json:"bundles"`
}

type headsValue struct {
	Name       string   `json:"name"`
	Heads      []string `json:"heads"`
	Deprecated *string  `json:"deprecated,omitempty"`
}

type bundleValue struct {
	Name       string   `json:"name"`
	Version    string   `json:"version,omitempty"`
	Image      string   `json:"image"`
	Channels   []string `json:"channels"`
	Deprecated *string  `json:"deprecated,omitempty"`
}

// shown is a package, or the bundle of it that is asked for.
func shown(c resolver.Catalog, asked []string) (showValue, error) {
	p := c.Package
	bundles := slices.Clone(p.Bundles)
	slices.SortStableFunc(bundles, func(a, b catalog.Bundle) int { return resolver.CompareBundles(b, a) })
	if len(asked) > 0 {
		b, found := graph.Find(p, asked[0])
		if !found {
			return showValue{}, fmt.Errorf("package %s of catalog %s has no bundle and no version %q", p.Name, c.Name, asked[0])
		}
		bundles = []catalog.Bundle{b}
	}
	value := showValue{
		Catalog: c.Name, Package: p.Name, DefaultChannel: p.DefaultChannel, Deprecated: deprecation(p, catalog.SchemaPackage, ""),
		Channels: []headsValue{}, Bundles: []bundleValue{},
	}
	wanted := map[string]bool{}
	for _, b := range bundles {
		channels := []string{}
		for _, channel := range merged(p.Channels) {
			if slices.ContainsFunc(channel.Entries, func(e catalog.Entry) bool { return e.Name == b.Name }) {
				channels = append(channels, channel.Name)
				wanted[channel.Name] = true
			}
		}
		value.Bundles = append(value.Bundles, bundleValue{
			Name: b.Name, Version: b.Version, Image: b.Image, Channels: channels, Deprecated: deprecation(p, catalog.SchemaBundle, b.Name),
		})
	}
	for _, channel := range merged(p.Channels) {
		if len(asked) == 0 || wanted[channel.Name] {
			value.Channels = append(value.Channels, headsValue{
				Name: channel.Name, Heads: append([]string{}, graph.Heads(channel)...), Deprecated: deprecation(p, catalog.SchemaChannel, channel.Name),
			})
		}
	}
	return value, nil
}

func (v showValue) text(style printer.Style) string {
	var out strings.Builder
	title := fmt.Sprintf("Package %s of catalog %s", v.Package, v.Catalog)
	if v.Deprecated != nil {
		title += ", " + deprecatedText(v.Deprecated)
	}
	out.WriteString(view.Inline(title) + "\n\n")
	channels := printer.Table{Headers: []string{"CHANNEL", "HEADS", "NOTES"}}
	for _, c := range v.Channels {
		var notes []string
		if c.Name == v.DefaultChannel {
			notes = append(notes, "default")
		}
		if c.Deprecated != nil {
			notes = append(notes, deprecatedText(c.Deprecated))
		}
		addRow(&channels, c.Name, strings.Join(c.Heads, ", "), strings.Join(notes, ", "))
	}
	bundles := printer.Table{Headers: []string{"VERSION", "BUNDLE", "CHANNELS", "IMAGE", "NOTES"}}
	for _, b := range v.Bundles {
		notes := ""
		if b.Deprecated != nil {
			notes = deprecatedText(b.Deprecated)
		}
		addRow(&bundles, b.Version, b.Name, strings.Join(b.Channels, ", "), b.Image, notes)
	}
	out.WriteString(channels.Render(style) + "\n" + bundles.Render(style))
	return out.String()
}

// addRow adds cells of a catalog, with a dash for those that are empty.
func addRow(table *printer.Table, cells ...string) {
	for i := range cells {
		cells[i] = dash(view.Inline(cells[i]))
	}
	table.Add(cells...)
}
