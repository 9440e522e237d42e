// SPDX-License-Identifier: Apache-2.0

// Package graph has the upgrade graph of a package: its bundles, the edges between them, and paths along the edges. It is
// pure; which bundle an upgrade goes to is always asked of internal/resolver.
package graph

import (
	"cmp"
	"slices"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// Kind is how a catalog states an edge.
type Kind string

// Kinds of edges. Of several between two bundles, the first of these is kept.
const (
	Replaces  Kind = "replaces"
	Skips     Kind = "skips"
	SkipRange Kind = "skipRange"
)

// Edge leads from a bundle to one that it can be upgraded to.
type Edge struct {
	From, To string
	Kind     Kind
	Range    string // of a skipRange
}

// Node is a bundle, or a name that an edge starts from.
type Node struct {
	Name string
	// Version is empty if the bundle is not in the catalog, or has none.
	Version string
	// Missing says that the catalog has no such bundle. Upgrades can start there, and cannot go there.
	Missing bool
	// Deprecated says that the catalog deprecates the bundle, perhaps without a Message.
	Deprecated bool
	Message    string
	// Channels are those of the graph that have the bundle, in the order of the catalog.
	Channels []string
}

// Graph is the part of a package in some channels.
type Graph struct {
	Nodes []Node // in upgrade order: what is replaced or skipped first, then by version
	Edges []Edge // in the order of the bundles that they start from, then of those that they lead to

	nodes map[string]int // by name, into Nodes
	from  map[string][]Edge
}

// New returns the graph of the channels, of all if there are none. What is installed becomes a node, if it is given.
func New(p *catalog.Package, channels []string, installed *resolver.Installed) *Graph {
	b := &builder{of: p, bundles: map[string]catalog.Bundle{}, deprecated: map[string]catalog.Deprecation{},
		byName: map[string]*Node{}, edges: map[[2]string]Edge{}}
	for _, bundle := range slices.Backward(p.Bundles) { // of several with a name, the first counts
		b.bundles[bundle.Name] = bundle
	}
	for _, d := range slices.Backward(p.Deprecations) {
		if d.Schema == catalog.SchemaBundle {
			b.deprecated[d.Name] = d
		}
	}
	b.nodes(channels, installed)
	b.addEdges(channels)
	return b.graph()
}

// Node returns a node by name.
func (g *Graph) Node(name string) (Node, bool) {
	i, found := g.nodes[name]
	if !found {
		return Node{}, false
	}
	return g.Nodes[i], true
}

// From returns the edges that start at a bundle, in the order of those that they lead to.
func (g *Graph) From(name string) []Edge { return g.from[name] }

// Edge returns the edge between two bundles.
func (g *Graph) Edge(from, to string) (Edge, bool) {
	for _, e := range g.from[from] {
		if e.To == to {
			return e, true
		}
	}
	return Edge{}, false
}

// builder collects a graph.
type builder struct {
	of         *catalog.Package
	bundles    map[string]catalog.Bundle
	deprecated map[string]catalog.Deprecation // of bundles, by name

	byName map[string]*Node
	edges  map[[2]string]Edge // by the names of both bundles
}

// asked tells whether a channel counts.
func asked(channels []string, name string) bool {
	return len(channels) == 0 || slices.Contains(channels, name)
}

func (b *builder) nodes(channels []string, installed *resolver.Installed) {
	for _, channel := range b.of.Channels {
		if !asked(channels, channel.Name) {
			continue
		}
		for _, entry := range channel.Entries {
			node := b.node(entry.Name)
			if !slices.Contains(node.Channels, channel.Name) {
				node.Channels = append(node.Channels, channel.Name)
			}
			for _, old := range replaced(entry) {
				b.node(old)
			}
		}
	}
	if len(channels) == 0 {
		for _, bundle := range b.of.Bundles {
			b.node(bundle.Name)
		}
	}
	if installed != nil {
		b.node(installed.Bundle).Version = installed.Version
	}
}

// node returns the node of a name, which it makes if there is none.
func (b *builder) node(name string) *Node {
	if node, found := b.byName[name]; found {
		return node
	}
	bundle, present := b.bundles[name]
	d, deprecated := b.deprecated[name]
	node := &Node{Name: name, Missing: !present, Version: bundle.Version, Deprecated: deprecated, Message: d.Message}
	b.byName[name] = node
	return node
}

// replaced are the bundles that an entry replaces or skips by name.
func replaced(entry catalog.Entry) []string {
	names := make([]string, 0, len(entry.Skips)+1)
	for _, name := range append([]string{entry.Replaces}, entry.Skips...) {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

func (b *builder) addEdges(channels []string) {
	for _, channel := range b.of.Channels {
		if !asked(channels, channel.Name) {
			continue
		}
		for _, entry := range channel.Entries {
			b.edge(Edge{From: entry.Replaces, To: entry.Name, Kind: Replaces})
			for _, skipped := range entry.Skips {
				b.edge(Edge{From: skipped, To: entry.Name, Kind: Skips})
			}
			b.rangeEdges(entry)
		}
	}
}

// rangeEdges adds the edges of a skipRange. One that cannot be read has none, as in resolution.
func (b *builder) rangeEdges(entry catalog.Entry) {
	if entry.SkipRange == "" {
		return
	}
	contains, err := resolver.SkipRange(entry.SkipRange)
	if err != nil {
		return
	}
	for name, node := range b.byName {
		if contains(node.Version) {
			b.edge(Edge{From: name, To: entry.Name, Kind: SkipRange, Range: entry.SkipRange})
		}
	}
}

// strength orders kinds: the lowest is kept.
var strength = map[Kind]int{Replaces: 0, Skips: 1, SkipRange: 2}

func (b *builder) edge(e Edge) {
	key := [2]string{e.From, e.To}
	old, found := b.edges[key]
	if e.From == "" || e.From == e.To || found && strength[old.Kind] <= strength[e.Kind] {
		return
	}
	b.edges[key] = e
}

// graph orders what was collected.
func (b *builder) graph() *Graph {
	names := make([]string, 0, len(b.byName))
	for name := range b.byName {
		names = append(names, name)
	}
	before := map[string][]string{}
	for _, e := range b.edges {
		if e.Kind != SkipRange {
			before[e.To] = append(before[e.To], e.From)
		}
	}
	g := &Graph{nodes: map[string]int{}, from: map[string][]Edge{}}
	for _, name := range order(names, before, func(name string) string { return b.byName[name].Version }) {
		g.nodes[name] = len(g.Nodes)
		g.Nodes = append(g.Nodes, *b.byName[name])
	}
	for _, e := range b.edges {
		g.Edges = append(g.Edges, e)
	}
	slices.SortFunc(g.Edges, func(x, y Edge) int {
		return cmp.Or(cmp.Compare(g.nodes[x.From], g.nodes[y.From]), cmp.Compare(g.nodes[x.To], g.nodes[y.To]))
	})
	for _, e := range g.Edges {
		g.from[e.From] = append(g.from[e.From], e)
	}
	return g
}
