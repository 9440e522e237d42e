// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/graph"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// checker collects the problems of a package.
type checker struct {
	*contents
	name     string
	problems []Problem
}

func (p *contents) check(name string) []Problem {
	c := &checker{contents: p, name: name}
	c.declaration()
	c.duplicates("channel", p.channels)
	c.duplicates("bundle", p.bundles)
	if len(p.channels) == 0 {
		c.add(Error, "the package has no channels")
	}
	for _, channel := range p.Channels {
		c.channel(channel)
	}
	c.bundlesOf()
	c.deprecations()
	return c.problems
}

func (c *checker) add(s Severity, format string, args ...any) {
	c.problems = append(c.problems, Problem{Severity: s, Package: c.name, Text: fmt.Sprintf(format, args...)})
}

// declaration checks the blob olm.package.
func (c *checker) declaration() {
	switch {
	case len(c.declared) == 0:
		c.add(Error, "the blob %s is missing", catalog.SchemaPackage)
		return
	case len(c.declared) > 1:
		c.add(Error, "%d blobs %s: %s", len(c.declared), catalog.SchemaPackage, strings.Join(c.declared, "; "))
	}
	switch {
	case c.DefaultChannel == "":
		c.add(Error, "the default channel is missing: set defaultChannel of %s", catalog.SchemaPackage)
	case c.channels[c.DefaultChannel] == nil:
		c.add(Error, "the default channel %q does not exist", c.DefaultChannel)
	}
}

func (c *checker) duplicates(what string, places map[string][]string) {
	for _, name := range slices.Sorted(maps.Keys(places)) {
		switch {
		case name == "":
			c.add(Error, "%s: %s: %v", strings.Join(places[name], "; "), what, errNoName)
		case len(places[name]) > 1:
			c.add(Error, "%d blobs of the %s %q: %s", len(places[name]), what, name, strings.Join(places[name], "; "))
		}
	}
}

// channel checks the entries of a channel and the graph that they are.
func (c *checker) channel(channel catalog.Channel) {
	if len(channel.Entries) == 0 {
		c.add(Error, "channel %q has no entries", channel.Name)
		return
	}
	entries := map[string]catalog.Entry{}
	for _, entry := range channel.Entries {
		if _, twice := entries[entry.Name]; twice {
			c.add(Error, "channel %q has two entries of the bundle %q", channel.Name, entry.Name)
		}
		entries[entry.Name] = entry
		if c.bundles[entry.Name] == nil {
			c.add(Error, "channel %q names the bundle %q, which does not exist", channel.Name, entry.Name)
		}
		if entry.SkipRange == "" {
			continue
		}
		if _, err := resolver.SkipRange(entry.SkipRange); err != nil {
			c.add(Error, "channel %q: the skipRange %q of %q is invalid, and counts for nothing: %v", channel.Name, entry.SkipRange, entry.Name, err)
		}
	}
	if fault := graph.Fault(channel); fault != "" {
		c.add(Error, "%s", fault)
	}
}

// bundlesOf checks the bundles.
func (c *checker) bundlesOf() {
	used := map[string]bool{}
	for _, channel := range c.Channels {
		for _, entry := range channel.Entries {
			used[entry.Name] = true
		}
	}
	versions := map[string]string{}
	for _, bundle := range c.Bundles {
		if err := resolver.CheckVersion(bundle); err != nil {
			c.add(Error, "bundle %q has no valid version: %v", bundle.Name, err)
		} else if other, taken := versions[bundle.Version]; taken && other != bundle.Name {
			c.add(Error, "bundles %q and %q have the same version %s", other, bundle.Name, bundle.Version)
		} else {
			versions[bundle.Version] = bundle.Name
		}
		if bundle.Image == "" {
			c.add(Error, "bundle %q has no image", bundle.Name)
		}
		if !used[bundle.Name] {
			c.add(Warning, "bundle %q is in no channel: only queries without channels find it, and no upgrade leads to it", bundle.Name)
		}
	}
}

// deprecations checks that what is deprecated exists, and that users are told what to do.
func (c *checker) deprecations() {
	for _, d := range c.Deprecations {
		switch {
		case d.Schema == catalog.SchemaBundle && c.bundles[d.Name] == nil:
			c.add(Warning, "the deprecated bundle %q does not exist", d.Name)
		case d.Schema == catalog.SchemaChannel && c.channels[d.Name] == nil:
			c.add(Warning, "the deprecated channel %q does not exist", d.Name)
		}
		if d.Message == "" {
			c.add(Error, "the deprecation of %s %q has no message", d.Schema, d.Name)
		}
	}
}
