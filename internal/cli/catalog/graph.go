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
)

// Formats of the graph.
const (
	outputMermaid printer.Output = "mermaid"
	outputDot     printer.Output = "dot"
)

type graphOptions struct {
	options
	channels []string
	from     string
	to       string
}

func graphCommand(a *kit.App) *cobra.Command {
	var o graphOptions
	cmd := &cobra.Command{
		Use:   "graph PACKAGE",
		Short: "Show the upgrade graph of a package, and the path of upgrades",
		Long: `Shows the upgrade edges between the bundles of a package: replaces (solid), skips (dotted) and skipRange (dashed).

With --from it shows the upgrades that a controller makes, one after the other: each is the answer of satchel resolve
--installed, the highest version to which an edge leads. It also shows where they end and why. With --to the upgrades stop
at that version and leave out all higher ones, and the path with the fewest upgrades is shown as well. To take that path,
set each of its versions in turn.

If several catalogs have the package, the one with the highest priority is shown.

` + exitCodes,
		Example: a.Example(`
# The edges of one channel
satchel catalog graph argocd-operator --channel alpha --catalog community=./catalog

# The path from what is installed
satchel catalog graph argocd-operator --from 0.8.0 --to 0.11.0 --catalog community=./catalog

# A picture
satchel catalog graph argocd-operator --catalog community=./catalog -o dot | dot -Tsvg > graph.svg`),
		ValidArgsFunction: cobra.NoFileCompletions, // reading a large catalog takes seconds
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.to != "" && o.from == "" {
				return kit.UsageError(cmd, "--to needs --from")
			}
			c, err := o.onePackage(a, cmd, args)
			if err != nil {
				return err
			}
			drawn, err := o.drawing(c)
			if err != nil {
				return err
			}
			return drawn.print(a, o.output)
		},
	}
	o.flags(a, cmd, printer.OutputText, outputMermaid, outputDot, printer.OutputJSON, printer.OutputYAML)
	f := cmd.Flags()
	f.StringSliceVar(&o.channels, "channel", nil, "Channel that bundles and upgrade edges are taken from; may be repeated. All channels if it is not given.")
	f.StringVar(&o.from, "from", "", "Bundle that upgrades start from, as BUNDLE, VERSION or BUNDLE@VERSION; the last form needs no bundle in the catalog.")
	f.StringVar(&o.to, "to", "", "Version or bundle that upgrades stop at.")
	return cmd
}

// drawing is what the command shows.
type drawing struct {
	catalog  string
	name     string
	channels []string
	graph    *graph.Graph
	trip     *trip // nil without --from
}

// trip is the part about paths.
type trip struct {
	from     resolver.Installed
	to       *catalog.Bundle // nil without --to
	versions string          // the range that the controller follows
	path     graph.Path
	shortest []graph.Hop
	possible bool // there is a shortest path
}

func (o *graphOptions) drawing(c resolver.Catalog) (drawing, error) {
	for _, name := range o.channels {
		if !slices.ContainsFunc(c.Package.Channels, func(channel catalog.Channel) bool { return channel.Name == name }) {
			return drawing{}, fmt.Errorf("package %s of catalog %s has no channel %q, only %s", c.Package.Name, c.Name, name, channelNames(c.Package))
		}
	}
	d := drawing{catalog: c.Name, name: c.Package.Name, channels: o.channels}
	if o.from == "" {
		d.graph = graph.New(c.Package, o.channels, nil)
		return d, nil
	}
	t, err := o.trip(c.Package)
	if err != nil {
		return drawing{}, err
	}
	d.graph = graph.New(c.Package, o.channels, &t.from)
	q := resolver.Query{Package: c.Package.Name, Channels: o.channels, Range: t.versions, Installed: &t.from}
	t.path = graph.Follow(d.graph, q, c, t.to)
	if t.to != nil {
		t.shortest, t.possible = d.graph.Shortest(t.from.Bundle, t.to.Name)
	}
	d.trip = t
	return d, nil
}

func channelNames(p *catalog.Package) string {
	var names []string
	for _, channel := range merged(p.Channels) {
		names = append(names, channel.Name)
	}
	return strings.Join(names, ", ")
}

// trip reads --from and --to.
func (o *graphOptions) trip(p *catalog.Package) (*trip, error) {
	t := &trip{}
	if name, version, found := strings.Cut(o.from, "@"); found {
		t.from = resolver.Installed{Bundle: name, Version: version}
	} else {
		b, err := find(p, "from", o.from)
		if err != nil {
			return nil, fmt.Errorf("%w, or give --from BUNDLE@VERSION for one that is not in the catalog", err)
		}
		t.from = resolver.Installed{Bundle: b.Name, Version: b.Version}
	}
	if o.to == "" {
		return t, nil
	}
	b, err := find(p, "to", o.to)
	if err != nil {
		return nil, err
	}
	t.to, t.versions = &b, "<="+graph.WithoutBuild(b.Version)
	return t, nil
}

// find returns the bundle that a flag names.
func find(p *catalog.Package, flag, word string) (catalog.Bundle, error) {
	b, found := graph.Find(p, word)
	if !found {
		return b, fmt.Errorf("--%s %q is no bundle and no version of package %s: see catalog channels", flag, word, p.Name)
	}
	if err := resolver.CheckVersion(b); err != nil {
		return b, fmt.Errorf("--%s: bundle %s has no valid version: %w", flag, b.Name, err)
	}
	return b, nil
}
