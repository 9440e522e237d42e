// SPDX-License-Identifier: Apache-2.0

package closure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// permitted are the catalogs with the bundles that all needs accept.
func permitted(catalogs []resolver.Catalog, needs []need) []resolver.Catalog {
	return keep(catalogs, func(b catalog.Bundle) bool {
		return !slices.ContainsFunc(needs, func(n need) bool { return !n.accepts(b) })
	})
}

// without are the catalogs without a bundle.
func without(catalogs []resolver.Catalog, name string) []resolver.Catalog {
	return keep(catalogs, func(b catalog.Bundle) bool { return b.Name != name })
}

// keep copies catalogs with some of their bundles.
func keep(catalogs []resolver.Catalog, wanted func(catalog.Bundle) bool) []resolver.Catalog {
	kept := slices.Clone(catalogs)
	for i := range kept {
		if kept[i].Package == nil {
			continue
		}
		p := *kept[i].Package
		p.Bundles = slices.DeleteFunc(slices.Clone(p.Bundles), func(b catalog.Bundle) bool { return !wanted(b) })
		kept[i].Package = &p
	}
	return kept
}

// noBundle says that no bundle satisfies all needs of a package.
func noBundle(n need, needs []need, catalogs []resolver.Catalog) string {
	var newest *catalog.Bundle
	for _, c := range catalogs {
		if c.Package == nil {
			continue
		}
		for i := range c.Package.Bundles {
			if newest == nil || resolver.CompareBundles(*newest, c.Package.Bundles[i]) < 0 {
				newest = &c.Package.Bundles[i]
			}
		}
	}
	if newest == nil {
		return n.text() + ", and no catalog has the package " + n.Package
	}
	var texts []string
	for _, each := range needs {
		if text := each.text(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return fmt.Sprintf("%s, and no bundle of package %s satisfies that; the newest one is %s", strings.Join(texts, ", "), n.Package, newest.Name)
}

// because says which bundles need the chosen bundle of a package.
func because(at state, name string) string {
	var texts []string
	for _, n := range at.packages {
		if n.Package == name {
			texts = append(texts, n.text())
		}
	}
	if len(texts) == 0 {
		return ": it is the bundle of the query"
	}
	return ": " + strings.Join(texts, ", ")
}

// has returns what a BundleDeployment of the namespace has installed of a package.
func (s *search) has(name string) (Installed, bool) {
	at := slices.IndexFunc(s.installed, func(i Installed) bool { return i.Package == name })
	if at < 0 {
		return Installed{}, false
	}
	return s.installed[at], true
}

// needInstalled meets a need with what is installed, which is not changed.
func (s *search) needInstalled(at state, n need, has Installed) (state, bool, error) {
	if !inRange(n.Range, has.Version) {
		return s.fail(n, fmt.Sprintf("upgrade the BundleDeployment %s first", has.Deployment),
			"%s, and BundleDeployment %s has installed version %s", n.text(), has.Deployment, orUnknown(has.Version))
	}
	if n.provides != nil {
		return s.fail(n, fmt.Sprintf("upgrade the BundleDeployment %s to a version that provides it", has.Deployment),
			"%s, which the cluster does not serve, although BundleDeployment %s has installed package %s", n.text(), has.Deployment, n.Package)
	}
	at.link(n, has.Deployment, true)
	at.note(fmt.Sprintf("%s: BundleDeployment %s has installed version %s", n.text(), has.Deployment, orUnknown(has.Version)))
	return s.solve(at)
}

func orUnknown(version string) string {
	if version == "" {
		return "of an unknown number"
	}
	return version
}
