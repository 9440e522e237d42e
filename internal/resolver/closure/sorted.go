// SPDX-License-Identifier: Apache-2.0

package closure

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// closure sorts the bundles so that each comes after those that it needs. Bundles that need each other are refused: each
// would wait for the other one.
func (s state) closure() (Closure, error) {
	sorter := &sorter{state: s, done: map[string]bool{}}
	if err := sorter.visit(s.chosen[0].name); err != nil {
		return Closure{}, err
	}
	return Closure{Bundles: sorter.sorted, Notes: s.notes}, nil
}

type sorter struct {
	state  state
	done   map[string]bool
	path   []string
	sorted []Bundle
}

func (s *sorter) visit(name string) error {
	if at := slices.Index(s.path, name); at >= 0 {
		cycle := append(slices.Clone(s.path[at:]), name)
		return &RefusalError{
			Text:   "packages require each other, so that none of them can be installed first: " + strings.Join(cycle, " -> "),
			Remedy: "install them one after the other, the first one with spec.registryV1.requirements Warn",
		}
	}
	if s.done[name] {
		return nil
	}
	s.done[name] = true
	s.path = append(s.path, name)
	c := s.state.choiceOf(name)
	bundle := Bundle{Answer: c.answer, Package: name, RequiredBy: s.requiredBy(name)}
	for _, e := range s.edges() {
		if e.from != name {
			continue
		}
		if e.deployment {
			bundle.Deployments = append(bundle.Deployments, e.to)
			continue
		}
		bundle.DependsOn = append(bundle.DependsOn, e.to)
		if err := s.visit(e.to); err != nil {
			return err
		}
	}
	s.path = s.path[:len(s.path)-1]
	s.sorted = append(s.sorted, bundle)
	return nil
}

// edges are all of them, in one order.
func (s *sorter) edges() []edge {
	return slices.SortedFunc(maps.Keys(s.state.edges), func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
}

// requiredBy says which bundles need a package, and why.
func (s *sorter) requiredBy(name string) []string {
	var texts []string
	for _, e := range s.edges() {
		if e.to == name && !e.deployment {
			texts = append(texts, s.state.edges[e])
		}
	}
	return texts
}
