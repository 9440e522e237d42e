// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"errors"
	"testing"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// versions returns bundles p.v<version> with that version.
func versions(all ...string) []catalog.Bundle {
	var bundles []catalog.Bundle
	for _, v := range all {
		bundles = append(bundles, catalog.Bundle{Name: "p.v" + v, Image: "example.org/p:" + v, Version: v})
	}
	return bundles
}

// channel returns a channel.
func channel(name string, entries ...catalog.Entry) catalog.Channel {
	return catalog.Channel{Name: name, Entries: entries}
}

// entry returns an entry without edges.
func entry(name string) catalog.Entry { return catalog.Entry{Name: name} }

// replaces returns an entry with one edge.
func replaces(name, from string) catalog.Entry { return catalog.Entry{Name: name, Replaces: from} }

// deprecated returns deprecations of bundles.
func deprecated(names ...string) []catalog.Deprecation {
	var all []catalog.Deprecation
	for _, name := range names {
		all = append(all, catalog.Deprecation{Schema: catalog.SchemaBundle, Name: name, Message: "too old"})
	}
	return all
}

// catalogWith returns a catalog with the package p.
func catalogWith(name string, priority int32, p catalog.Package) resolver.Catalog {
	p.Name = "p"
	return resolver.Catalog{Name: name, Priority: priority, Package: &p}
}

// installed returns p.v<version>.
func installed(version string) *resolver.Installed {
	return &resolver.Installed{Bundle: "p.v" + version, Version: version}
}

// chosen returns the bundle and its catalog, or the text of the refusal.
func chosen(t *testing.T, q resolver.Query, catalogs ...resolver.Catalog) string {
	t.Helper()
	q.Package = "p"
	answer, err := resolver.Resolve(q, catalogs)
	if err != nil {
		if refusal := new(resolver.RefusalError); !errors.As(err, &refusal) {
			t.Fatalf("%T is no refusal", err)
		}
		return err.Error()
	}
	return answer.Bundle + " from " + answer.Catalog
}
