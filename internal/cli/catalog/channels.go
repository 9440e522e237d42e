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

// packageValue is the output for programs.
type packageValue struct {
	Catalog        string         `json:"catalog"`
	Package        string         `json:"package"`
	DefaultChannel string         `json:"defaultChannel"`
	Channels       []channelValue `json:"channels"`
}

type channelValue struct {
	Name       string       `json:"name"`
	Heads      []string     `json:"heads"`
	Deprecated *string      `json:"deprecated,omitempty"` // the message
	Entries    []entryValue `json:"entries"`
}

type entryValue struct {
	Bundle     string   `json:"bundle"`
	Version    string   `json:"version,omitempty"`
	Replaces   string   `json:"replaces,omitempty"`
	Skips      []string `json:"skips,omitempty"`
	SkipRange  string   `json:"skipRange,omitempty"`
	Head       bool     `json:"head,omitempty"`
	Missing    bool     `json:"missing,omitempty"`
	Deprecated *string  `json:"deprecated,omitempty"`
}

func channelsCommand(a *kit.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "channels PACKAGE",
		Short: "Show the channels of a package and what each bundle replaces",
		Long: `Lists the entries of each channel in upgrade order: what is replaced or skipped comes first, then the lower version. The
column NOTES shows heads, which no entry of the channel replaces or skips, deprecated bundles, and bundles that the
catalog does not have. The default channel is marked; resolution does not prefer it.

If several catalogs have the package, the one with the highest priority is shown.

` + exitCodes,
		Example: a.Example(`
# All channels
satchel catalog channels argocd-operator --catalog community=./catalog

# The heads of each channel
satchel catalog channels argocd-operator --catalog community=./catalog -o json | jq '.channels[] | {name, heads}'`),
		ValidArgsFunction: cobra.NoFileCompletions, // reading a large catalog takes seconds
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.onePackage(a, cmd, args)
			if err != nil {
				return err
			}
			value := channelsOf(c)
			if o.output != printer.OutputText {
				return printer.PrintValue(a.Streams.Out, o.output, value)
			}
			_, err = fmt.Fprint(a.Streams.Out, channelsText(value, printer.StyleFor(a.Streams.Out)))
			return err
		},
	}
	o.flags(a, cmd, printer.OutputText, printer.OutputJSON, printer.OutputYAML)
	return cmd
}

// channelsOf are the channels of a package. Entries of channels with one name are put together, as resolution does.
func channelsOf(c resolver.Catalog) packageValue {
	value := packageValue{Catalog: c.Name, Package: c.Package.Name, DefaultChannel: c.Package.DefaultChannel, Channels: []channelValue{}}
	for _, channel := range merged(c.Package.Channels) {
		value.Channels = append(value.Channels, channelOf(c.Package, channel))
	}
	return value
}

func merged(channels []catalog.Channel) []catalog.Channel {
	var all []catalog.Channel
	for _, channel := range channels {
		i := slices.IndexFunc(all, func(other catalog.Channel) bool { return other.Name == channel.Name })
		if i < 0 {
			all = append(all, channel)
			continue
		}
		all[i].Entries = slices.Concat(all[i].Entries, channel.Entries)
	}
	return all
}

func channelOf(p *catalog.Package, channel catalog.Channel) channelValue {
	value := channelValue{
		Name: channel.Name, Heads: append([]string{}, graph.Heads(channel)...),
		Deprecated: deprecation(p, catalog.SchemaChannel, channel.Name), Entries: []entryValue{},
	}
	for _, entry := range graph.Ordered(p, channel) {
		i := slices.IndexFunc(p.Bundles, func(b catalog.Bundle) bool { return b.Name == entry.Name })
		e := entryValue{
			Bundle: entry.Name, Replaces: entry.Replaces, Skips: entry.Skips, SkipRange: entry.SkipRange,
			Head: slices.Contains(value.Heads, entry.Name), Missing: i < 0,
			Deprecated: deprecation(p, catalog.SchemaBundle, entry.Name),
		}
		if i >= 0 {
			e.Version = p.Bundles[i].Version
		}
		value.Entries = append(value.Entries, e)
	}
	return value
}

// deprecation is the message of a deprecation, nil if there is none.
func deprecation(p *catalog.Package, schema, name string) *string {
	for _, d := range p.Deprecations {
		if d.Schema == schema && d.Name == name {
			message := strings.TrimSpace(d.Message)
			return &message
		}
	}
	return nil
}

func channelsText(value packageValue, style printer.Style) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Package %s of catalog %s\n", view.Inline(value.Package), value.Catalog)
	if len(value.Channels) == 0 {
		out.WriteString("\nThe package has no channels.\n")
	}
	for _, channel := range value.Channels {
		fmt.Fprintf(&out, "\nChannel %s\n", view.Inline(channelTitle(channel, value.DefaultChannel)))
		table := printer.Table{Headers: []string{"BUNDLE", "VERSION", "REPLACES", "SKIPS", "SKIP RANGE", "NOTES"}}
		for _, e := range channel.Entries {
			addRow(&table, e.Bundle, e.Version, e.Replaces, strings.Join(e.Skips, ", "), e.SkipRange, notes(e))
		}
		out.WriteString(table.Render(style))
	}
	return out.String()
}

// dash stands for an empty cell.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func channelTitle(channel channelValue, byDefault string) string {
	title := channel.Name
	if channel.Name == byDefault {
		title += ", the default"
	}
	if channel.Deprecated != nil {
		title += ", " + deprecatedText(channel.Deprecated)
	}
	return title
}

func notes(e entryValue) string {
	var all []string
	if e.Head {
		all = append(all, "head")
	}
	if e.Missing {
		all = append(all, "not in the catalog")
	}
	if e.Deprecated != nil {
		all = append(all, deprecatedText(e.Deprecated))
	}
	return strings.Join(all, ", ")
}

func deprecatedText(message *string) string {
	if *message == "" {
		return "deprecated"
	}
	return "deprecated: " + *message
}
