// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"slices"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// order sorts names so that those before a name come first, and otherwise by version and name. In a cycle, the lowest
// version comes last.
func order(names []string, before map[string][]string, version func(string) string) []string {
	ascending := func(a, b string) int {
		return cmp.Or(compareVersions(version(a), version(b)), cmp.Compare(a, b))
	}
	sorted := slices.SortedFunc(slices.Values(names), ascending)
	place := make(map[string]int, len(sorted))
	for i, name := range sorted {
		place[name] = i
	}
	done := map[string]bool{}
	ordered := make([]string, 0, len(sorted))
	var visit func(name string)
	visit = func(name string) {
		if _, known := place[name]; done[name] || !known {
			return
		}
		done[name] = true
		for _, earlier := range slices.SortedFunc(slices.Values(before[name]), ascending) {
			visit(earlier)
		}
		ordered = append(ordered, name)
	}
	for _, name := range sorted {
		visit(name)
	}
	return ordered
}

// compareVersions orders versions as resolution does.
func compareVersions(a, b string) int {
	return resolver.CompareBundles(catalog.Bundle{Version: a}, catalog.Bundle{Version: b})
}

// Ordered returns the entries of a channel in upgrade order.
func Ordered(p *catalog.Package, channel catalog.Channel) []catalog.Entry {
	versions := map[string]string{}
	for _, bundle := range p.Bundles {
		versions[bundle.Name] = bundle.Version
	}
	entries := map[string][]catalog.Entry{}
	before := map[string][]string{}
	var names []string
	for _, entry := range channel.Entries {
		if entries[entry.Name] == nil {
			names = append(names, entry.Name)
		}
		entries[entry.Name] = append(entries[entry.Name], entry)
		before[entry.Name] = append(before[entry.Name], replaced(entry)...)
	}
	ordered := make([]catalog.Entry, 0, len(channel.Entries))
	for _, name := range order(names, before, func(name string) string { return versions[name] }) {
		ordered = append(ordered, entries[name]...)
	}
	return ordered
}

// Heads are the entries of a channel that none of its entries replaces or skips, in the order of the channel.
func Heads(channel catalog.Channel) []string {
	gone := map[string]bool{}
	for _, entry := range channel.Entries {
		for _, name := range replaced(entry) {
			gone[name] = true
		}
	}
	var heads []string
	for _, entry := range channel.Entries {
		if !gone[entry.Name] && !slices.Contains(heads, entry.Name) {
			heads = append(heads, entry.Name)
		}
	}
	return heads
}
