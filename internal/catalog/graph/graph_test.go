// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/graph"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// shop has a shorter path than the one of the highest successors, and an edge of each kind.
func shop() *catalog.Package {
	return &catalog.Package{
		Name: "p",
		Channels: []catalog.Channel{
			{Name: "stable", Entries: []catalog.Entry{
				{Name: "p.v2.0.0", Replaces: "p.v1.2.0", Skips: []string{"p.v1.1.0"}},
				{Name: "p.v1.2.0", Replaces: "p.v1.1.1", SkipRange: ">=1.1.0 <1.2.0"},
				{Name: "p.v1.1.1", Replaces: "p.v1.0.0", Skips: []string{"p.v1.1.0"}},
				{Name: "p.v1.1.0", Replaces: "p.v1.0.0"},
				{Name: "p.v1.0.0", Replaces: "p.v0.9.0"},
			}},
			{Name: "fast", Entries: []catalog.Entry{{Name: "p.v2.0.0"}, {Name: "p.v3.0.0-rc.1", Replaces: "p.v2.0.0"}, {Name: "p.v4.0.0", SkipRange: "bad"}}},
		},
		Bundles: bundles("1.0.0", "1.1.0", "1.1.1", "1.2.0", "2.0.0", "3.0.0-rc.1", "4.0.0", "5.0.0"),
	}
}

func bundles(versions ...string) []catalog.Bundle {
	var all []catalog.Bundle
	for _, v := range versions {
		all = append(all, catalog.Bundle{Name: "p.v" + v, Image: "i:" + v, Version: v})
	}
	return all
}

func names(g *graph.Graph) string {
	var all []string
	for _, n := range g.Nodes {
		all = append(all, n.Name)
	}
	return strings.Join(all, " ")
}

func edges(g *graph.Graph) string {
	var all []string
	for _, e := range g.Edges {
		all = append(all, fmt.Sprintf("%s>%s %s", e.From, e.To, e.Kind))
	}
	return strings.ReplaceAll(strings.Join(all, ", "), "p.v", "")
}

func hops(all []graph.Hop) string {
	var text []string
	for _, h := range all {
		text = append(text, strings.TrimPrefix(h.Bundle, "p.v")+" "+string(h.Edge.Kind))
	}
	return strings.Join(text, ", ")
}

func TestGraph(t *testing.T) {
	all := graph.New(shop(), nil, nil)
	if got := names(all); got != "p.v0.9.0 p.v1.0.0 p.v1.1.0 p.v1.1.1 p.v1.2.0 p.v2.0.0 p.v3.0.0-rc.1 p.v4.0.0 p.v5.0.0" {
		t.Errorf("bundles: %s", got)
	}
	if got := edges(all); got != "0.9.0>1.0.0 replaces, 1.0.0>1.1.0 replaces, 1.0.0>1.1.1 replaces, 1.1.0>1.1.1 skips, 1.1.0>1.2.0 skipRange, "+
		"1.1.0>2.0.0 skips, 1.1.1>1.2.0 replaces, 1.2.0>2.0.0 replaces, 2.0.0>3.0.0-rc.1 replaces" {
		t.Errorf("edges: %s", got)
	}
	if node, _ := all.Node("p.v0.9.0"); !node.Missing || node.Channels != nil {
		t.Errorf("a bundle that is only replaced: %+v", node)
	}
	if node, _ := all.Node("p.v2.0.0"); node.Missing || fmt.Sprint(node.Channels) != "[stable fast]" {
		t.Errorf("a bundle of two channels: %+v", node)
	}
	fast := graph.New(shop(), []string{"fast"}, &resolver.Installed{Bundle: "old", Version: "0.1.0"})
	if got := names(fast); got != "old p.v2.0.0 p.v3.0.0-rc.1 p.v4.0.0" {
		t.Errorf("bundles of a channel: %s", got)
	}
	ranged := graph.New(shop(), []string{"stable"}, &resolver.Installed{Bundle: "old", Version: "1.1.7"})
	if e, found := ranged.Edge("old", "p.v1.2.0"); !found || e.Kind != graph.SkipRange || e.Range != ">=1.1.0 <1.2.0" {
		t.Errorf("from a bundle that is not in the catalog: %+v", e)
	}
}

func TestOrderedAndHeads(t *testing.T) {
	p := &catalog.Package{Bundles: bundles("1.0.0", "2.0.0", "3.0.0", "4.0.0")}
	channel := catalog.Channel{Entries: []catalog.Entry{
		{Name: "p.v2.0.0", Replaces: "p.v3.0.0"}, {Name: "p.v3.0.0"}, {Name: "p.v4.0.0", Skips: []string{"p.v2.0.0"}}, {Name: "p.v1.0.0"},
	}}
	var got []string
	for _, e := range graph.Ordered(p, channel) {
		got = append(got, strings.TrimPrefix(e.Name, "p.v"))
	}
	if fmt.Sprint(got) != "[1.0.0 3.0.0 2.0.0 4.0.0]" {
		t.Errorf("what is replaced has to come first, then the lower version: %v", got)
	}
	if got := graph.Heads(channel); fmt.Sprint(got) != "[p.v4.0.0 p.v1.0.0]" {
		t.Errorf("heads: %v", got)
	}
	cycle := catalog.Channel{Entries: []catalog.Entry{{Name: "p.v1.0.0", Replaces: "p.v2.0.0"}, {Name: "p.v2.0.0", Replaces: "p.v1.0.0"}}}
	if n := len(graph.Ordered(p, cycle)); n != 2 {
		t.Errorf("a cycle: %d entries", n)
	}
	if got := graph.Heads(cycle); got != nil {
		t.Errorf("heads of a cycle: %v", got)
	}
}

func TestFollow(t *testing.T) {
	deprecated := shop()
	deprecated.Deprecations = []catalog.Deprecation{{Schema: catalog.SchemaBundle, Name: "p.v2.0.0"}}
	lone := &catalog.Package{Name: "p", Bundles: bundles("1.0.0")}
	for _, c := range []struct {
		name, from, to, versions string
		of                       *catalog.Package
		channels                 []string
		want                     string
		end                      graph.End
	}{
		{name: "the highest successor", from: "1.0.0", of: shop(), channels: []string{"stable"}, want: "1.1.1 replaces, 1.2.0 replaces, 2.0.0 replaces", end: graph.NoEdge},
		{name: "to a version", from: "1.1.0", to: "1.2.0", versions: "<=1.2.0", of: shop(), want: "1.2.0 skipRange", end: graph.Reached},
		{name: "a target behind no edge", from: "1.1.0", to: "4.0.0", versions: "<=4.0.0", of: shop(), want: "2.0.0 skips", end: graph.NoEdge},
		{name: "a target below", from: "2.0.0", to: "1.0.0", versions: "<=1.0.0", of: shop(), end: graph.IsRefused},
		{name: "where it is", from: "2.0.0", to: "2.0.0", versions: "<=2.0.0", of: shop(), end: graph.Reached},
		{name: "the newest", from: "1.0.0", of: lone, end: graph.IsNewest},
		{name: "deprecated", from: "1.2.0", of: deprecated, channels: []string{"stable"}, end: graph.NoEdge},
		{name: "no version", from: "x", of: lone, end: graph.IsRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			installed := resolver.Installed{Bundle: "p.v" + c.from, Version: c.from}
			var target *catalog.Bundle
			if c.to != "" {
				b, found := graph.Find(c.of, c.to)
				if !found {
					t.Fatal("the target is not found")
				}
				target = &b
			}
			g := graph.New(c.of, c.channels, &installed)
			q := resolver.Query{Package: "p", Range: c.versions, Channels: c.channels, Installed: &installed}
			path := graph.Follow(g, q, resolver.Catalog{Name: "c", Package: c.of}, target)
			if got := hops(path.Hops); got != c.want || path.End != c.end {
				t.Errorf("got %q, end %s, want %q, end %s: %v", got, path.End, c.want, c.end, path.Details)
			}
		})
	}
}

func TestShortest(t *testing.T) {
	g := graph.New(shop(), nil, nil)
	for _, c := range []struct{ from, to, want string }{
		{"1.0.0", "2.0.0", "1.1.0 replaces, 2.0.0 skips"},
		{"1.0.0", "1.2.0", "1.1.1 replaces, 1.2.0 replaces"},
		{"0.9.0", "1.0.0", "1.0.0 replaces"},
		{"1.0.0", "1.0.0", ""},
		{"2.0.0", "1.0.0", "none"},
		{"1.0.0", "4.0.0", "none"},
		{"1.0.0", "0.9.0", "none"},
	} {
		found, possible := g.Shortest("p.v"+c.from, "p.v"+c.to)
		got := hops(found)
		if !possible {
			got = "none"
		}
		if got != c.want {
			t.Errorf("%s to %s: got %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func TestFind(t *testing.T) {
	p := &catalog.Package{Bundles: []catalog.Bundle{{Name: "a", Version: "1.0.0+2"}, {Name: "b", Version: "1.0.0+10"}, {Name: "1.0.0+2", Version: "2.0.0"}}}
	for word, want := range map[string]string{"a": "a", "1.0.0+10": "b", "1.0.0": "b", "1.0.0+2": "1.0.0+2", "3.0.0": "", "": ""} {
		if b, _ := graph.Find(p, word); b.Name != want {
			t.Errorf("%q: got %q, want %q", word, b.Name, want)
		}
	}
}

// generated is a package with edges in all directions, also to bundles that are not there.
func generated(random *rand.Rand) *catalog.Package {
	p := &catalog.Package{Name: "p"}
	version := func() string { return fmt.Sprintf("%d.%d.0", random.Intn(3), random.Intn(3)) }
	for range random.Intn(14) {
		v := version()
		if !slices.ContainsFunc(p.Bundles, func(b catalog.Bundle) bool { return b.Version == v }) {
			p.Bundles = append(p.Bundles, bundles(v)...)
			if random.Intn(5) == 0 {
				p.Deprecations = append(p.Deprecations, catalog.Deprecation{Schema: catalog.SchemaBundle, Name: "p.v" + v})
			}
		}
	}
	for i := range random.Intn(3) + 1 {
		channel := catalog.Channel{Name: string(rune('a' + i))}
		for range random.Intn(16) {
			e := catalog.Entry{Name: "p.v" + version()}
			switch random.Intn(4) {
			case 0:
				e.SkipRange = []string{"<", ">=", ">", "="}[random.Intn(4)] + version()
			case 1:
				e.Skips = []string{"p.v" + version(), "p.v" + version()}
			default:
				e.Replaces = "p.v" + version()
			}
			channel.Entries = append(channel.Entries, e)
		}
		p.Channels = append(p.Channels, channel)
	}
	return p
}

// TestPathsAreAnswers compares paths with the resolver: each upgrade is its answer, no upgrade follows the end, and each
// of the fewest upgrades is one that a pinned version resolves to.
func TestPathsAreAnswers(t *testing.T) {
	random := rand.New(rand.NewSource(1)) //nolint:gosec // test data
	walked, shortened := 0, 0
	for range 3000 {
		p := generated(random)
		if len(p.Bundles) == 0 {
			continue
		}
		start, to := p.Bundles[random.Intn(len(p.Bundles))], p.Bundles[random.Intn(len(p.Bundles))]
		var channels []string
		if random.Intn(3) == 0 {
			channels = []string{"a"}
		}
		at := resolver.Installed{Bundle: start.Name, Version: start.Version}
		c := []resolver.Catalog{{Name: "c", Package: p}}
		g := graph.New(p, channels, &at)
		answer := func(installed resolver.Installed, versions string) string {
			a, err := resolver.Resolve(resolver.Query{Package: "p", Channels: channels, Range: versions, Installed: &installed}, c)
			if err != nil {
				return ""
			}
			return a.Bundle
		}
		path := graph.Follow(g, resolver.Query{Package: "p", Channels: channels, Installed: &at}, c[0], nil)
		from := at
		for _, hop := range path.Hops {
			walked++
			if got := answer(from, ""); got != hop.Bundle || hop.Edge.From != from.Bundle || hop.Edge.To != hop.Bundle {
				t.Fatalf("from %s the resolver goes to %s, and the path to %+v", from.Bundle, got, hop)
			}
			from = resolver.Installed{Bundle: hop.Bundle, Version: hop.Version}
		}
		if got := answer(from, ""); path.End != graph.Repeats && got != "" && got != from.Bundle {
			t.Fatalf("the path ends at %s (%s), and the resolver goes to %s", from.Bundle, path.End, got)
		}
		few, possible := g.Shortest(start.Name, to.Name)
		from = at
		for _, hop := range few {
			shortened++
			if got := answer(from, "="+hop.Version); got != hop.Bundle {
				t.Fatalf("from %s to =%s: the resolver answers %q", from.Bundle, hop.Version, got)
			}
			from = resolver.Installed{Bundle: hop.Bundle, Version: hop.Version}
		}
		reached := slices.IndexFunc(path.Hops, func(h graph.Hop) bool { return h.Bundle == to.Name })
		if reached >= 0 && (!possible || len(few) > reached+1) {
			t.Fatalf("the path reaches %s with %d upgrades, the shortest one needs %d (%v)", to.Name, reached+1, len(few), possible)
		}
	}
	if walked < 1000 || shortened < 500 {
		t.Errorf("only %d and %d upgrades", walked, shortened)
	}
}
