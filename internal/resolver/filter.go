// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	bsemver "github.com/blang/semver/v4"

	"github.com/satchel-dev/satchel/internal/catalog"
)

// filter keeps some of the bundles.
type filter struct {
	name  Filter
	keeps func(bundle) bool
}

// filters are those that the query demands of a package, in the order in which they are applied.
func (r *resolution) filters(p *catalog.Package) []filter {
	var all []filter
	if len(r.channels) > 0 {
		entries := r.entries(p)
		all = append(all, filter{FilterChannels, func(b bundle) bool { return entries[b.Name] }})
	}
	if r.constraint != nil {
		all = append(all, filter{FilterRange, func(b bundle) bool { return b.err == nil && inRange(r.constraint, b.version) }})
	}
	switch {
	case r.installed == nil:
	case r.followsEdges():
		successors := r.successors(p, asked)
		all = append(all, filter{FilterSuccessor, func(b bundle) bool { return successors[b.Name] || r.isInstalled(b) }})
	default:
		all = append(all, filter{FilterDowngrade, func(b bundle) bool {
			return b.err == nil && b.version.compare(*r.installed) >= 0
		}})
	}
	return all
}

// isInstalled tells whether a bundle has the installed version and release.
func (r *resolution) isInstalled(b bundle) bool {
	return b.err == nil && b.version.compare(*r.installed) == 0
}

// entries are the names of the bundles in the channels of the query (R4).
func (r *resolution) entries(p *catalog.Package) map[string]bool {
	names := map[string]bool{}
	for _, channel := range p.Channels {
		if !r.wanted(channel.Name) {
			continue
		}
		for _, entry := range channel.Entries {
			names[entry.Name] = true
		}
	}
	return names
}

// scope says which channels count.
type scope bool

const (
	asked  scope = true  // those of the query, or all
	others scope = false // those that the query leaves out
)

// scoped is a part of a package.
type scoped struct {
	of    *catalog.Package
	scope scope
}

// successors are the names of the entries with an edge from what is installed, in the channels that count (R5). Each
// entry, skip and skipRange is read once in a resolution.
func (r *resolution) successors(p *catalog.Package, counts scope) map[string]bool {
	if names, known := r.edges[scoped{p, counts}]; known {
		return names
	}
	names := map[string]bool{}
	for _, channel := range p.Channels {
		if scope(r.wanted(channel.Name)) != counts {
			continue
		}
		for i := range channel.Entries {
			entry := &channel.Entries[i]
			if !names[entry.Name] && r.follows(entry) {
				names[entry.Name] = true
			}
		}
	}
	r.edges[scoped{p, counts}] = names
	return names
}

// follows tells whether an entry has an edge from what is installed.
func (r *resolution) follows(entry *catalog.Entry) bool {
	installed := r.query.Installed.Bundle
	if entry.Replaces == installed {
		return true
	}
	for _, skipped := range entry.Skips {
		if skipped == installed {
			return true
		}
	}
	if entry.SkipRange == "" {
		return false
	}
	contains, known := r.skipRanges[entry.SkipRange]
	if !known {
		contains = r.skipRangeContains(entry.SkipRange)
		r.skipRanges[entry.SkipRange] = contains
	}
	return contains
}

// maxSkipRangeLength bounds ranges of catalogs.
const maxSkipRangeLength = 256

// skipRangeContains checks the whole installed version, prerelease included. A range that cannot be read contains
// nothing.
func (r *resolution) skipRangeContains(text string) bool {
	if len(text) > maxSkipRangeLength {
		return false
	}
	contains, err := bsemver.ParseRange(text)
	return err == nil && contains(r.installed.full)
}
