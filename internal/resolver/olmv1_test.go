// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// C3: the scenarios of OLM v1 about installing and updating extensions, as far as they are about which bundle is chosen. Its
// catalog has 1.2.0, which replaces 1.0.0 in no channel, and 1.0.1, which does.
func TestC3ScenariosOfOLMv1(t *testing.T) {
	test := catalog.Package{
		Bundles: versions("1.0.0", "1.0.1", "1.0.2", "1.2.0"),
		Channels: []catalog.Channel{
			channel("alpha", entry("p.v1.0.0"), catalog.Entry{Name: "p.v1.0.2"}),
			channel("beta", entry("p.v1.0.0"), replaces("p.v1.0.1", "p.v1.0.0"), replaces("p.v1.2.0", "p.v1.0.1")),
		},
	}
	v1, beta := installed("1.0.0"), []string{"beta"}
	newer := test
	newer.Bundles = append(versions("1.3.0"), test.Bundles...)
	newer.Channels = append([]catalog.Channel{channel("beta", replaces("p.v1.3.0", "p.v1.2.0"))}, test.Channels...)
	own := catalogWith("test-catalog", 0, test)
	for name, tc := range map[string]struct {
		query    resolver.Query
		catalogs []resolver.Catalog
		want     string
	}{
		"install the latest version":                      {resolver.Query{}, []resolver.Catalog{own}, "p.v1.2.0 from test-catalog"},
		"install the latest version of a channel":         {resolver.Query{Channels: []string{"alpha"}}, []resolver.Catalog{own}, "p.v1.0.2 from test-catalog"},
		"install a version":                               {resolver.Query{Range: "1.0.0"}, []resolver.Catalog{own}, "p.v1.0.0 from test-catalog"},
		"install a version that does not exist":           {resolver.Query{Range: "9.9.9"}, []resolver.Catalog{own}, `no bundles found for package "p" matching version "9.9.9"`},
		"refuse two catalogs with the same priority":      {resolver.Query{}, []resolver.Catalog{own, catalogWith("extra-catalog", 0, test)}, `found bundles for package "p" in multiple catalogs with the same priority [extra-catalog test-catalog]`},
		"install from the catalog with a higher priority": {resolver.Query{}, []resolver.Catalog{own, catalogWith("extra-catalog", 1, test)}, "p.v1.2.0 from extra-catalog"},
		"update to a successor":                           {resolver.Query{Range: "1.0.1", Installed: v1}, []resolver.Catalog{own}, "p.v1.0.1 from test-catalog"},
		"refuse a version that is no successor":           {resolver.Query{Range: "1.2.0", Installed: v1}, []resolver.Catalog{own}, `error upgrading from currently installed version "1.0.0": no bundles found for package "p" matching version "1.2.0"`},
		"force a version that is no successor":            {resolver.Query{Range: "1.2.0", Installed: v1, UpgradePolicy: resolver.SelfCertified}, []resolver.Catalog{own}, "p.v1.2.0 from test-catalog"},
		"update by itself within a range and a channel":   {resolver.Query{Range: ">=1.0.0", Channels: beta, Installed: v1}, []resolver.Catalog{own}, "p.v1.0.1 from test-catalog"},
		"stay at the newest version":                      {resolver.Query{Channels: beta, Installed: installed("1.2.0")}, []resolver.Catalog{own}, "p.v1.2.0 from test-catalog"},
		"update by itself from a new catalog image":       {resolver.Query{Channels: beta, Installed: installed("1.2.0")}, []resolver.Catalog{catalogWith("test-catalog", 0, newer)}, "p.v1.3.0 from test-catalog"},
		"stay where the channel has no successor":         {resolver.Query{Channels: []string{"alpha"}, Installed: v1}, []resolver.Catalog{own}, "p.v1.0.0 from test-catalog"},
	} {
		t.Run(name, func(t *testing.T) {
			got := chosen(t, tc.query, tc.catalogs...)
			if got, _, _ = strings.Cut(got, "\n"); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
