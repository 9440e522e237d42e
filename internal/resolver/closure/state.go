// SPDX-License-Identifier: Apache-2.0

package closure

import (
	"maps"
	"slices"

	bsemver "github.com/blang/semver/v4"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// need is a requirement of a chosen bundle.
type need struct {
	catalog.Requirement

	by *choice
	// provides is the kind for which a package is needed; nil if the package itself is required.
	provides *catalog.Kind
}

// text is what a bundle requires, such as: shop.v1 requires package db in version >=2.
func (n need) text() string {
	if n.provides != nil {
		return n.by.bundle.Name + " requires " + n.provides.String()
	}
	return n.by.bundle.Name + " requires " + n.Requirement.String()
}

// accepts tells whether a bundle satisfies the need of its package.
func (n need) accepts(b catalog.Bundle) bool {
	if n.provides != nil && !provides(b, *n.provides) {
		return false
	}
	return n.Range == "" || b.VersionProblem == "" && inRange(n.Range, b.Version)
}

func provides(b catalog.Bundle, kind catalog.Kind) bool { return slices.Contains(b.Provides, kind) }

// inRange tells whether a range of a catalog contains a version. One that cannot be read contains nothing.
func inRange(versions, version string) bool {
	if versions == "" {
		return true
	}
	contains, err := bsemver.ParseRange(versions)
	if err != nil {
		return false
	}
	v, err := bsemver.Parse(version)
	return err == nil && contains(v)
}

// choice is a bundle of the closure.
type choice struct {
	name   string // of its package
	answer resolver.Answer
	bundle catalog.Bundle
	by     *need // nil for the bundle of the query
}

// path are the bundles from that of the query to this one.
func (c *choice) path() []string {
	var names []string
	for at := c; at != nil; {
		names = append(names, at.bundle.Name)
		if at.by == nil {
			break
		}
		at = at.by.by
	}
	slices.Reverse(names)
	return names
}

// edge says that the bundle of one package needs another package, or a BundleDeployment.
type edge struct {
	from, to   string
	deployment bool
}

// state is a point of the search. A branch of it works on a copy.
type state struct {
	chosen    []*choice
	pending   []need
	packages  []need // those about packages that were looked at
	forbidden []need
	edges     map[edge]string // what the first bundle requires of the second
	notes     []string
}

func (s state) clone() state {
	return state{
		chosen: slices.Clone(s.chosen), pending: slices.Clone(s.pending), packages: slices.Clone(s.packages),
		forbidden: slices.Clone(s.forbidden), edges: maps.Clone(s.edges), notes: slices.Clone(s.notes),
	}
}

// choiceOf is the choice for a package; nil for none.
func (s state) choiceOf(name string) *choice {
	for _, c := range s.chosen {
		if c.name == name {
			return c
		}
	}
	return nil
}

// link records that a need is met by another package of the closure, or by a BundleDeployment. A bundle that meets its own
// need depends on nothing.
func (s state) link(n need, to string, deployment bool) {
	if !deployment && n.by.name == to {
		return
	}
	at := edge{from: n.by.name, to: to, deployment: deployment}
	if s.edges[at] == "" {
		s.edges[at] = n.text()
	}
}

// note adds a line once.
func (s *state) note(line string) {
	if !slices.Contains(s.notes, line) {
		s.notes = append(s.notes, line)
	}
}

// push adds needs. Parts of a constraint that all have to be met are needs of their own.
func (s *state) push(by *choice, requirements ...catalog.Requirement) {
	for _, r := range requirements {
		switch r.Type {
		case catalog.RequireAll:
			s.push(by, r.Of...)
		case catalog.RequireNone:
			s.forbidden = append(s.forbidden, need{Requirement: r, by: by})
		case catalog.RequireUnchecked:
			s.note(by.bundle.Name + " has " + r.Problem + ": it is not checked")
		default:
			s.pending = append(s.pending, need{Requirement: r, by: by})
		}
	}
}

// order is that in which needs are looked at: what leaves the fewest alternatives comes first.
var order = []catalog.RequirementType{catalog.RequireUnreadable, catalog.RequirePackage, catalog.RequireKind, catalog.RequireAny}

// next takes the next need.
func (s *state) next() (need, bool) {
	for _, kind := range order {
		at := slices.IndexFunc(s.pending, func(n need) bool { return n.Type == kind })
		if at < 0 {
			continue
		}
		n := s.pending[at]
		s.pending = slices.Delete(s.pending, at, at+1)
		return n, true
	}
	return need{}, false
}

// needsOf are all known needs of a package.
func (s state) needsOf(name string) []need {
	var all []need
	for _, list := range [][]need{s.packages, s.pending} {
		for _, n := range list {
			if n.Type == catalog.RequirePackage && n.Package == name {
				all = append(all, n)
			}
		}
	}
	return all
}
