// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	bsemver "github.com/blang/semver/v4"

	"github.com/satchel-dev/satchel/internal/catalog"
)

// nearest is the bundle that fails the fewest filters, nil if there is none with a version. Each filter is applied
// alone, other than in the funnel. Of several, the one that needs the smallest change of the query is chosen.
func (r *resolution) nearest() *Miss {
	var nearest *Miss
	var of bundle
	versions := versionsIn(r.query.Range)
	for _, c := range r.catalogs {
		if c.Package == nil {
			continue
		}
		missOf := r.missesIn(c)
		for _, b := range bundles(c.Package) {
			if b.err != nil {
				continue
			}
			if miss := missOf(b); nearest == nil || nearer(miss, b, *nearest, of, versions) {
				nearest, of = &miss, b
			}
		}
	}
	if nearest != nil {
		r.describe(nearest)
	}
	return nearest
}

// change orders the filters by how much of what the user wants changes without them.
var change = map[Filter]int{FilterDowngrade: 1, FilterPrerelease: 2, FilterChannels: 3, FilterSuccessor: 4, FilterRange: 5}

// nearer tells whether a bundle is nearer to the query than another one.
func nearer(a Miss, ofA bundle, b Miss, ofB bundle, versions []bsemver.Version) bool {
	order := cmp.Or(cmp.Compare(len(a.Failed), len(b.Failed)), cmp.Compare(largest(a.Failed), largest(b.Failed)))
	if order == 0 && slices.Contains(a.Failed, FilterRange) {
		order = slices.Compare(distance(ofA, versions), distance(ofB, versions))
	}
	return cmp.Or(order, better(ofA, ofB)) < 0
}

func largest(filters []Filter) int {
	most := 0
	for _, f := range filters {
		most = max(most, change[f])
	}
	return most
}

// versionText matches the versions in a range, which may be incomplete.
var versionText = regexp.MustCompile(`\d+(\.\d+)*`)

// versionsIn are the versions that a range names, without their prereleases.
func versionsIn(text string) []bsemver.Version {
	var found []bsemver.Version
	for _, part := range versionText.FindAllString(text, -1) {
		if v, err := bsemver.ParseTolerant(part); err == nil {
			found = append(found, v)
		}
	}
	return found
}

// distance is how far a bundle is from the nearest of some versions: in major, minor and patch.
func distance(b bundle, versions []bsemver.Version) []uint64 {
	var least []uint64
	for _, v := range versions {
		has := b.version.semver
		d := []uint64{apart(has.Major, v.Major), apart(has.Minor, v.Minor), apart(has.Patch, v.Patch), uint64(min(1, len(has.Pre)))}
		if least == nil || slices.Compare(d, least) < 0 {
			least = d
		}
	}
	return least
}

func apart(a, b uint64) uint64 { return max(a, b) - min(a, b) }

// newest is the newest bundle of the winner's catalog; nil if that is the winner.
func (r *resolution) newest(winner candidate) *Miss {
	all := slices.DeleteFunc(bundles(winner.from.Package), func(b bundle) bool { return b.err != nil })
	newest := slices.MaxFunc(all, func(a, b bundle) int { return a.version.compare(b.version) })
	if newest.version.compare(winner.version) <= 0 {
		return nil
	}
	miss := r.missesIn(winner.from)(newest)
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
	for _, channel := range p.Channels {
		if r.wanted(channel.Name) || slices.Contains(found, channel.Name) {
			continue
		}
		if slices.ContainsFunc(channel.Entries, func(e catalog.Entry) bool { return e.Name == miss.Bundle && r.follows(&e) }) {
			found = append(found, channel.Name)
		}
	}
	return found
}

// missesIn returns a function that applies each filter of a catalog alone. A bundle to which only channels outside of the
// query have an edge fails the filter of the channels.
func (r *resolution) missesIn(c Catalog) func(bundle) Miss {
	filters := r.filters(c.Package)
	var elsewhere map[string]bool
	if r.installed != nil && r.followsEdges() {
		elsewhere = r.successors(c.Package, others)
	}
	return func(b bundle) Miss {
		miss := Miss{Bundle: b.Name, Version: b.version.String(), Catalog: c.Name, Deprecated: b.deprecated}
		for _, f := range filters {
			name := f.name
			if f.keeps(b) {
				continue
			}
			switch {
			case name == FilterSuccessor && elsewhere[b.Name]:
				name = FilterChannels
			case name == FilterRange && r.onlyPrerelease(b):
				name = FilterPrerelease
			}
			if !slices.Contains(miss.Failed, name) {
				miss.Failed = append(miss.Failed, name)
			}
		}
		return miss
	}
}

// onlyPrerelease tells whether the range would contain a bundle if it contained prereleases.
func (r *resolution) onlyPrerelease(b bundle) bool {
	withPrereleases := *r.constraint
	withPrereleases.IncludePrerelease = true
	return inRange(&withPrereleases, b.version)
}

// String names the bundle and what it fails.
func (m *Miss) String() string {
	text := fmt.Sprintf("%s (version %s) of catalog %s", m.Bundle, m.Version, m.Catalog)
	if len(m.Channels) > 0 {
		text += fmt.Sprintf(" in channels %v", m.Channels)
	}
	if reasons := m.reasons(); len(reasons) > 0 {
		text += ": " + strings.Join(reasons, ", ")
	}
	return text
}

// Because says why the bundle was not chosen.
func (m *Miss) Because() string {
	if reasons := m.reasons(); len(reasons) > 0 {
		return strings.Join(reasons, ", ")
	}
	return "another one comes first"
}

func (m *Miss) reasons() []string {
	reasons := make([]string, 0, len(m.Failed)+1)
	for _, f := range m.Failed {
		reasons = append(reasons, failed[f])
	}
	if m.Deprecated {
		reasons = append(reasons, "deprecated")
	}
	return reasons
}

// failed are the words for bundles that fail a filter.
var failed = map[Filter]string{
	FilterChannels:   "outside the channels",
	FilterRange:      "outside the range",
	FilterPrerelease: "a prerelease, which the range leaves out",
	FilterSuccessor:  "no edge leads to it from what is installed",
	FilterDowngrade:  "lower than the installed version",
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
			steps = append(steps, "set version to a range that contains "+nearest.Version)
		case FilterPrerelease:
			steps = append(steps, fmt.Sprintf("set version to a range with a prerelease, such as >=%s", nearest.Version))
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

// edgeRemedy names the best bundle to which an edge leads, whatever its version and channel.
func (r *resolution) edgeRemedy() string {
	const otherwise = "set upgradePolicy to SelfCertified if its author supports that upgrade"
	var hop *bundle
	for _, c := range r.catalogs {
		if c.Package == nil {
			continue
		}
		inAsked, inOthers := r.successors(c.Package, asked), r.successors(c.Package, others)
		for _, b := range bundles(c.Package) {
			if b.err == nil && (inAsked[b.Name] || inOthers[b.Name]) && b.Name != r.query.Installed.Bundle && (hop == nil || better(b, *hop) < 0) {
				hop = &b
			}
		}
	}
	if hop == nil {
		return "no edge leads anywhere from what is installed: " + otherwise
	}
	return fmt.Sprintf("upgrade first to %s (version %s), the best successor of what is installed, or %s", hop.Name, hop.version, otherwise)
}
