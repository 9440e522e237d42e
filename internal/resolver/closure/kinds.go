// SPDX-License-Identifier: Apache-2.0

package closure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/catalog"
)

// needKind meets a need with a chosen bundle, with the cluster, or with the package that provides the kind.
func (s *search) needKind(at state, n need) (state, bool, error) {
	for _, c := range at.chosen {
		if provides(c.bundle, n.Kind) {
			at.link(n, c.name, false)
			return s.solve(at)
		}
	}
	served, err := s.source.Serves(n.Kind)
	if err != nil {
		return state{}, false, err
	}
	if served {
		at.note(n.text() + ": the cluster serves it")
		return s.solve(at)
	}
	providers, err := s.source.Providers(n.Kind)
	if err != nil {
		return state{}, false, err
	}
	names := nearest(providers, n.by.answer.Catalog)
	switch len(names) {
	case 0:
		return s.fail(n, "add a catalog with a package that provides it, or install its CRD", "%s, which no package of the catalogs provides", n.text())
	case 1:
		kind := n.Kind
		return s.needPackage(at, need{
			Requirement: catalog.Requirement{Type: catalog.RequirePackage, Package: names[0]}, by: n.by, provides: &kind,
		})
	}
	return s.fail(n, fmt.Sprintf("install one of them first, such as %s", names[0]),
		"%s, which several packages provide: %s", n.text(), strings.Join(names, ", "))
}

// nearest are the packages of the same catalog, or else of the catalogs with the highest priority, sorted.
func nearest(providers []Provider, from string) []string {
	if len(providers) == 0 {
		return nil
	}
	wanted := func(p Provider) bool { return p.Catalog == from }
	if !slices.ContainsFunc(providers, wanted) {
		highest := slices.MaxFunc(providers, func(a, b Provider) int { return cmp.Compare(a.Priority, b.Priority) }).Priority
		wanted = func(p Provider) bool { return p.Priority == highest }
	}
	var names []string
	for _, p := range providers {
		if wanted(p) {
			names = append(names, p.Package)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// needAny meets the first alternative that is met already, or else that leads to an answer.
func (s *search) needAny(at state, n need) (state, bool, error) {
	for _, part := range n.Of {
		met, err := s.met(at, part)
		if err != nil {
			return state{}, false, err
		}
		if met {
			at.push(n.by, part) // so that it is recorded what meets it
			return s.solve(at)
		}
	}
	for _, part := range n.Of {
		if err := s.step(at, n); err != nil {
			return state{}, false, err
		}
		next := at.clone()
		next.push(n.by, part)
		if found, met, err := s.solve(next); met || err != nil {
			return found, met, err
		}
	}
	return s.fail(n, "", "%s, which has no alternatives", n.text())
}

// met tells whether a requirement is met without another bundle.
func (s *search) met(at state, r catalog.Requirement) (bool, error) {
	switch r.Type {
	case catalog.RequirePackage:
		if has, found := s.has(r.Package); found && inRange(r.Range, has.Version) {
			return true, nil
		}
		c := at.choiceOf(r.Package)
		return c != nil && inRange(r.Range, c.bundle.Version), nil
	case catalog.RequireKind:
		if slices.ContainsFunc(at.chosen, func(c *choice) bool { return provides(c.bundle, r.Kind) }) {
			return true, nil
		}
		return s.source.Serves(r.Kind)
	case catalog.RequireAll, catalog.RequireAny, catalog.RequireNone:
		return s.metCompound(at, r)
	}
	return false, nil
}

// metCompound looks at the parts of a constraint.
func (s *search) metCompound(at state, r catalog.Requirement) (bool, error) {
	count := 0
	for _, part := range r.Of {
		met, err := s.met(at, part)
		if err != nil {
			return false, err
		}
		if met {
			count++
		}
	}
	switch r.Type {
	case catalog.RequireAll:
		return count == len(r.Of), nil
	case catalog.RequireNone:
		return count == 0, nil
	}
	return count > 0, nil
}

// permitted ends a branch in which everything is met: it is one if nothing is there that a bundle excludes.
func (s *search) permitted(at state) (state, bool, error) {
	for _, n := range at.forbidden {
		for _, part := range n.Of {
			met, err := s.met(at, part)
			if err != nil {
				return state{}, false, err
			}
			if met {
				return s.fail(n, "leave one of them out", "%s cannot be installed together with %s", n.by.bundle.Name, part.String())
			}
		}
	}
	return at, true, nil
}
