// SPDX-License-Identifier: Apache-2.0

package catalog

import "github.com/satchel-dev/satchel/internal/catalog/graph"

// graphValue is the output for programs.
type graphValue struct {
	Catalog  string      `json:"catalog"`
	Package  string      `json:"package"`
	Channels []string    `json:"channels,omitempty"`
	Bundles  []nodeValue `json:"bundles"`
	Edges    []edgeValue `json:"edges"`
	Upgrades *pathValue  `json:"upgrades,omitempty"`
	// Shortest is left out if there is no path, and without --to.
	Shortest []hopValue `json:"shortest,omitempty"`
}

type nodeValue struct {
	Name       string   `json:"name"`
	Version    string   `json:"version,omitempty"`
	Channels   []string `json:"channels,omitempty"`
	Missing    bool     `json:"missing,omitempty"`
	Deprecated *string  `json:"deprecated,omitempty"` // the message
}

type edgeValue struct {
	From      string `json:"from"`
	To        string `json:"to"`
	Kind      string `json:"kind"`
	SkipRange string `json:"skipRange,omitempty"`
}

type pathValue struct {
	From    string     `json:"from"`
	Range   string     `json:"range,omitempty"`
	Hops    []hopValue `json:"hops"`
	End     string     `json:"end"`
	Details []string   `json:"details,omitempty"`
}

type hopValue struct {
	Bundle  string `json:"bundle"`
	Version string `json:"version"`
	Kind    string `json:"kind,omitempty"`
}

func (d drawing) value() graphValue {
	value := graphValue{Catalog: d.catalog, Package: d.name, Channels: d.channels, Bundles: []nodeValue{}, Edges: []edgeValue{}}
	for _, n := range d.graph.Nodes {
		node := nodeValue{Name: n.Name, Version: n.Version, Channels: n.Channels, Missing: n.Missing}
		if n.Deprecated {
			node.Deprecated = &n.Message
		}
		value.Bundles = append(value.Bundles, node)
	}
	for _, e := range d.graph.Edges {
		value.Edges = append(value.Edges, edgeValue{From: e.From, To: e.To, Kind: string(e.Kind), SkipRange: e.Range})
	}
	if t := d.trip; t != nil {
		value.Upgrades = &pathValue{From: t.from.Bundle, Range: t.versions, Hops: hopValues(t.path.Hops), End: string(t.path.End), Details: t.path.Details}
		value.Shortest = hopValues(t.shortest)
	}
	return value
}

func hopValues(hops []graph.Hop) []hopValue {
	values := []hopValue{}
	for _, hop := range hops {
		values = append(values, hopValue{Bundle: hop.Bundle, Version: hop.Version, Kind: string(hop.Edge.Kind)})
	}
	return values
}
