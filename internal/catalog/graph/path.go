// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// Hop is one upgrade.
type Hop struct {
	Bundle  string
	Version string // with its release
	// Edge leads to the bundle. Its Kind is empty where the version stays and the name changes.
	Edge Edge
}

// End is why a path ends.
type End string

// Reasons why a path ends.
const (
	Reached   End = "Reached"  // the wanted version
	IsNewest  End = "Newest"   // there is no newer bundle
	NoEdge    End = "NoEdge"   // the catalog has a newer bundle, or the wanted one, and no edge to it
	IsRefused End = "Refused"  // resolution refuses
	Repeats   End = "Cycle"    // upgrades come back to a bundle of the path
	Held      End = "HeldBack" // the catalog has a newer bundle that is not chosen: it is deprecated
)

// Path is what repeated upgrades lead to.
type Path struct {
	Hops []Hop
	End  End
	// Details say more about the end, in lines.
	Details []string
}

// Follow returns the upgrades of a controller that follows the query: the answer of resolver.Resolve, from there the next,
// and so on. The query has what is installed. With a target, upgrades stop there and Range names no higher version.
func Follow(g *Graph, q resolver.Query, c resolver.Catalog, target *catalog.Bundle) Path {
	var path Path
	at := *q.Installed
	seen := map[string]bool{at.Bundle: true}
	for {
		if target != nil && at.Bundle == target.Name {
			path.End = Reached
			return path
		}
		q.Installed = &resolver.Installed{Bundle: at.Bundle, Version: at.Version}
		answer, err := resolver.Resolve(q, []resolver.Catalog{c})
		if err != nil {
			path.End, path.Details = IsRefused, refusal(err)
			return path
		}
		if answer.Bundle == at.Bundle {
			path.End, path.Details = stays(q, c, answer, target)
			return path
		}
		next := resolver.Installed{Bundle: answer.Bundle, Version: full(answer)}
		edge, _ := g.Edge(at.Bundle, next.Bundle)
		path.Hops = append(path.Hops, Hop{Bundle: next.Bundle, Version: next.Version, Edge: edge})
		if seen[next.Bundle] {
			path.End = Repeats
			return path
		}
		seen[next.Bundle], at = true, next
	}
}

// full is the version of an answer with its release.
func full(a resolver.Answer) string {
	if a.Release == "" {
		return a.Version
	}
	return a.Version + "+" + a.Release
}

// refusal is the text and the details of a refusal.
func refusal(err error) []string {
	lines := []string{err.Error()}
	if r, is := err.(*resolver.RefusalError); is { //nolint:errorlint // Resolve returns no other error
		lines = append(lines, r.Details()...)
	}
	return lines
}

// stays says why nothing is better than what is installed.
func stays(q resolver.Query, c resolver.Catalog, answer resolver.Answer, target *catalog.Bundle) (End, []string) {
	if target != nil {
		q.Range = "=" + WithoutBuild(target.Version)
		_, err := resolver.Resolve(q, []resolver.Catalog{c})
		if err == nil {
			return Held, []string{target.Name + " is deprecated, or has the same version"}
		}
		return NoEdge, refusal(err)[1:]
	}
	switch {
	case answer.Newest == nil:
		return IsNewest, nil
	case len(answer.Newest.Failed) == 0:
		return Held, []string{answer.Newest.String()}
	}
	return NoEdge, []string{answer.Newest.String()}
}

// WithoutBuild is a version without its build metadata or release, for ranges.
func WithoutBuild(version string) string {
	version, _, _ = strings.Cut(version, "+")
	return version
}

// Shortest returns the fewest upgrades from one bundle to another. Of paths of one length, it prefers late bundles in
// upgrade order. It is false if no path leads there.
func (g *Graph) Shortest(from, to string) ([]Hop, bool) {
	came := map[string]Edge{}
	seen := map[string]bool{from: true}
	queue := []string{from}
	for len(queue) > 0 && !seen[to] {
		name := queue[0]
		queue = queue[1:]
		for _, e := range slices.Backward(g.from[name]) {
			if node, _ := g.Node(e.To); seen[e.To] || node.Missing {
				continue
			}
			seen[e.To], came[e.To] = true, e
			queue = append(queue, e.To)
		}
	}
	if !seen[to] {
		return nil, false
	}
	var hops []Hop
	for at := to; at != from; at = came[at].From {
		node, _ := g.Node(at)
		hops = append(hops, Hop{Bundle: at, Version: node.Version, Edge: came[at]})
	}
	slices.Reverse(hops)
	return hops, true
}

// Find returns the bundle that a word names: its name, its version, or its version without the release. Of several, it is
// the highest.
func Find(p *catalog.Package, word string) (catalog.Bundle, bool) {
	for _, matches := range []func(catalog.Bundle) bool{
		func(b catalog.Bundle) bool { return b.Name == word },
		func(b catalog.Bundle) bool { return b.Version == word },
		func(b catalog.Bundle) bool { return WithoutBuild(b.Version) == word },
	} {
		var found []catalog.Bundle
		for _, b := range p.Bundles {
			if matches(b) {
				found = append(found, b)
			}
		}
		if len(found) > 0 && word != "" {
			return slices.MaxFunc(found, resolver.CompareBundles), true
		}
	}
	return catalog.Bundle{}, false
}
