// SPDX-License-Identifier: Apache-2.0

package closure

import (
	"errors"
	"fmt"
	"slices"

	bsemver "github.com/blang/semver/v4"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// Find returns the closure of the bundle that a query chooses. Refusals of the query itself are of type
// *resolver.RefusalError, and those of what it requires of type *RefusalError. Other errors are those of the source.
func Find(q resolver.Query, source Source, installed []Installed) (Closure, error) {
	s := &search{source: source, installed: installed}
	catalogs, err := source.Package(q.Package)
	if err != nil {
		return Closure{}, err
	}
	answer, err := resolver.Resolve(q, catalogs)
	if err != nil {
		return Closure{}, err
	}
	found, met, err := s.solve(state{edges: map[edge]string{}}.choose(q.Package, answer, catalogs, nil))
	switch {
	case err != nil:
		return Closure{}, err
	case !met:
		return Closure{}, s.first
	}
	return found.closure()
}

// search is the work on one query.
type search struct {
	source    Source
	installed []Installed
	steps     int
	first     *RefusalError // of the branch that was tried first, which is the preferred one
}

// fail ends a branch.
func (s *search) fail(n need, remedy, format string, args ...any) (state, bool, error) {
	if s.first == nil {
		s.first = &RefusalError{Text: fmt.Sprintf(format, args...), Remedy: remedy, Path: n.by.path()}
	}
	return state{}, false, nil
}

// choose adds a bundle, and what it requires.
func (s state) choose(name string, answer resolver.Answer, catalogs []resolver.Catalog, by *need) state {
	next := s.clone()
	c := &choice{name: name, answer: answer, by: by}
	for _, from := range catalogs {
		if from.Name != answer.Catalog {
			continue
		}
		// Of several with the name, the resolver chose one with this image.
		at := slices.IndexFunc(from.Package.Bundles, func(b catalog.Bundle) bool { return b.Name == answer.Bundle && b.Image == answer.Image })
		c.bundle = from.Package.Bundles[at]
	}
	next.chosen = append(next.chosen, c)
	next.push(c, c.bundle.Requires...)
	return next
}

// solve meets all pending needs. It returns false if that is not possible from here.
func (s *search) solve(at state) (state, bool, error) {
	at = at.clone()
	n, more := at.next()
	if !more {
		return s.permitted(at)
	}
	switch n.Type {
	case catalog.RequirePackage:
		return s.needPackage(at, n)
	case catalog.RequireKind:
		return s.needKind(at, n)
	case catalog.RequireAny:
		return s.needAny(at, n)
	}
	return s.fail(n, "tell the author of the catalog, or leave the bundle out by a version range", "bundle %s: %s", n.by.bundle.Name, n.Problem)
}

// step counts a choice.
func (s *search) step(at state, n need) error {
	if len(at.chosen) >= mostPackages {
		return &RefusalError{Text: fmt.Sprintf("%s, and more than %d packages would be needed", n.text(), mostPackages), Path: n.by.path()}
	}
	if s.steps++; s.steps > mostSteps {
		return &RefusalError{
			Text: fmt.Sprintf("no closure was found in %d steps; the last one was: %s", mostSteps, n.text()), Path: n.by.path(),
			Remedy: "install one of the required packages first, or give fewer catalogs",
		}
	}
	return nil
}

// needPackage meets a need with a package: with the chosen bundle, with what is installed, or with the best bundle in all
// ranges that leads to an answer.
func (s *search) needPackage(at state, n need) (state, bool, error) {
	if n.Range != "" {
		if _, err := bsemver.ParseRange(n.Range); err != nil {
			return s.fail(n, "tell the author of the catalog", "%s, which is no range of versions: %v", n.text(), err)
		}
	}
	if c := at.choiceOf(n.Package); c != nil {
		if !n.accepts(c.bundle) {
			return s.fail(n, "install a version of one of them first that permits both, or leave it out by a version range",
				"%s, but %s is needed%s", n.text(), c.bundle.Name, because(at, n.Package))
		}
		at.packages = append(at.packages, n)
		at.link(n, n.Package, false)
		return s.solve(at)
	}
	if has, found := s.has(n.Package); found {
		return s.needInstalled(at, n, has)
	}
	catalogs, err := s.source.Package(n.Package)
	if err != nil {
		return state{}, false, err
	}
	return s.tryBundles(at, n, catalogs)
}

// tryBundles goes through the bundles of a package, the best first.
func (s *search) tryBundles(at state, n need, catalogs []resolver.Catalog) (state, bool, error) {
	needs := append([]need{n}, at.needsOf(n.Package)...)
	left := permitted(catalogs, needs)
	for tried := 0; ; tried++ {
		if err := s.step(at, n); err != nil {
			return state{}, false, err
		}
		answer, err := resolver.Resolve(resolver.Query{Package: n.Package}, left)
		var refusal *resolver.RefusalError
		switch {
		case errors.As(err, &refusal) && (refusal.Reason != resolver.NoBundles):
			return s.fail(n, refusal.Remedy, "%s: %s", n.text(), refusal.Text)
		case err != nil && tried > 0:
			return state{}, false, nil // the first one has said why
		case err != nil:
			return s.fail(n, "add a catalog that has one", "%s", noBundle(n, needs, catalogs))
		}
		next := at.choose(n.Package, answer, left, &n)
		next.packages = append(next.packages, n)
		next.link(n, n.Package, false)
		if found, met, err := s.solve(next); met || err != nil {
			return found, met, err
		}
		left = without(left, answer.Bundle)
	}
}
