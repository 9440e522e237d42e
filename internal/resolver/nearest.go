// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/catalog"
)

// nearest is the bundle that fails the fewest filters, and among those the best one; nil if there is none with a
// version. Each filter is applied alone, other than in the funnel.
func (r *resolution) nearest() *Miss {
	var nearest *Miss
	var of bundle
	for _, c := range r.catalogs {
		if c.Package == nil {
			continue
		}
		judge := r.judge(c)
		for _, b := range bundles(c.Package) {
			if b.err != nil {
				continue
			}
			miss := judge(b)
			if nearest == nil || cmp.Or(cmp.Compare(len(miss.Failed), len(nearest.Failed)), better(b, of)) < 0 {
				nearest, of = &miss, b
			}
		}
	}
	if nearest != nil {
		r.describe(nearest)
	}
	return nearest
}

// newest is the newest bundle of the winner's catalog; nil if that is the winner.
func (r *resolution) newest(winner candidate) *Miss {
	all := slices.DeleteFunc(bundles(winner.from.Package), func(b bundle) bool { return b.err != nil })
	newest := slices.MaxFunc(all, func(a, b bundle) int { return a.version.compare(b.version) })
	if newest.version.compare(winner.version) <= 0 {
		return nil
	}
	miss := r.judge(winner.from)(newest)
	r.describe(&miss)
	return &miss
}

// describe adds the channels of a bundle, which takes a pass over all entries.
func (r *resolution) describe(miss *Miss) {
	for _, c := range r.catalogs {
		if c.Name == miss.Catalog {
			miss.Channels = channelsOf(c.Package, miss.Bundle, func(string) bool { return true })
			miss.Edges = r.otherEdges(c.Package, miss)
		}
	}
}

// otherEdges are the channels outside of the query with an edge to a bundle.
func (r *resolution) otherEdges(p *catalog.Package, miss *Miss) []string {
	if r.installed == nil || !r.followsEdges() || !slices.Contains(miss.Failed, FilterChannels) {
		return nil
	}
	var found []string
	for _, name := range miss.Channels {
		if !r.wanted(name) && r.successors(p, func(channel string) bool { return channel == name })[miss.Bundle] {
			found = append(found, name)
		}
	}
	return found
}

// judge returns a function that applies each filter of a catalog alone. A bundle to which only channels outside of the
// query have an edge fails the filter of the channels.
func (r *resolution) judge(c Catalog) func(bundle) Miss {
	filters := r.filters(c.Package)
	anyEdge := func(bundle) bool { return false }
	if r.installed != nil && r.followsEdges() && len(r.channels) > 0 {
		everywhere := r.successors(c.Package, func(string) bool { return true })
		anyEdge = func(b bundle) bool { return everywhere[b.Name] }
	}
	return func(b bundle) Miss {
		miss := Miss{Bundle: b.Name, Version: b.version.String(), Catalog: c.Name, Deprecated: b.deprecated}
		for _, f := range filters {
			name := f.name
			if f.keeps(b) {
				continue
			}
			if name == FilterSuccessor && anyEdge(b) {
				name = FilterChannels
			}
			if !slices.Contains(miss.Failed, name) {
				miss.Failed = append(miss.Failed, name)
			}
		}
		return miss
	}
}

// String names the bundle and what it fails.
func (m *Miss) String() string {
	text := fmt.Sprintf("%s (version %s) of catalog %s", m.Bundle, m.Version, m.Catalog)
	if len(m.Channels) > 0 {
		text += fmt.Sprintf(" in channels %v", m.Channels)
	}
	reasons := make([]string, 0, len(m.Failed)+1)
	for _, f := range m.Failed {
		reasons = append(reasons, failed[f])
	}
	if m.Deprecated {
		reasons = append(reasons, "deprecated")
	}
	if len(reasons) > 0 {
		text += ": " + strings.Join(reasons, ", ")
	}
	return text
}

// failed are the words for bundles that fail a filter.
var failed = map[Filter]string{
	FilterChannels:  "outside the channels",
	FilterRange:     "outside the range",
	FilterSuccessor: "no edge leads to it from what is installed",
	FilterDowngrade: "lower than the installed version",
}

// remedy says how the nearest bundle could be chosen.
func (r *resolution) remedy(nearest *Miss) string {
	if nearest == nil {
		if slices.ContainsFunc(r.funnel, func(f Funnel) bool { return f.Found }) {
			return "the package has no bundle with a version: add a catalog that has one"
		}
		return "correct the name of the package, or add a catalog that has it"
	}
	steps := make([]string, 0, len(nearest.Failed))
	for _, f := range nearest.Failed {
		switch f {
		case FilterChannels:
			steps = append(steps, channelRemedy(nearest))
		case FilterRange:
			steps = append(steps, r.rangeRemedy(nearest))
		case FilterSuccessor:
			steps = append(steps, r.edgeRemedy())
		case FilterDowngrade:
			steps = append(steps, "set downgrade to Allow")
		}
	}
	return strings.Join(steps, "; ")
}

func channelRemedy(nearest *Miss) string {
	switch {
	case len(nearest.Edges) > 0:
		return fmt.Sprintf("add one of %v to channels, where an edge leads to it", nearest.Edges)
	case len(nearest.Channels) > 0:
		return fmt.Sprintf("add one of %v to channels", nearest.Channels)
	}
	return "leave channels out, because no channel has it"
}

func (r *resolution) rangeRemedy(nearest *Miss) string {
	if v, err := parseVersion(nearest.Version); err == nil && len(v.semver.Pre) > 0 && !strings.Contains(r.query.Range, "-") {
		return fmt.Sprintf("set version to a range that contains %s; a range without a prerelease contains none", nearest.Version)
	}
	return fmt.Sprintf("set version to a range that contains %s", nearest.Version)
}

// edgeRemedy names the best bundle to which an edge leads, whatever its version and channel.
func (r *resolution) edgeRemedy() string {
	const otherwise = "set upgradePolicy to SelfCertified if its author supports that upgrade"
	var hop *bundle
	for _, c := range r.catalogs {
		if c.Package == nil {
			continue
		}
		successors := r.successors(c.Package, func(string) bool { return true })
		for _, b := range bundles(c.Package) {
			if b.err == nil && successors[b.Name] && b.Name != r.query.Installed.Bundle && (hop == nil || better(b, *hop) < 0) {
				hop = &b
			}
		}
	}
	if hop == nil {
		return "no edge leads anywhere from what is installed: " + otherwise
	}
	return fmt.Sprintf("upgrade to %s (version %s) first, or %s", hop.Name, hop.version, otherwise)
}
