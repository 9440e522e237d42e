// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// rule is one case of a rule of doc.go.
type rule struct {
	reason   string
	query    resolver.Query
	catalogs []resolver.Catalog
	want     string
}

func check(t *testing.T, rules map[string]rule) {
	t.Helper()
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			if got := chosen(t, r.query, r.catalogs...); got != r.want {
				t.Errorf("got  %s\nwant %s\nbecause %s", got, r.want, r.reason)
			}
		})
	}
}

func one(p catalog.Package) []resolver.Catalog { return []resolver.Catalog{catalogWith("c", 0, p)} }

// TestR1Package is about catalogs without the package, and catalogs that cannot be read.
func TestR1Package(t *testing.T) {
	have := catalogWith("have", 0, catalog.Package{Bundles: versions("1.0.0")})
	check(t, map[string]rule{
		"a catalog without the package is skipped": {
			"it cannot offer anything", resolver.Query{},
			[]resolver.Catalog{{Name: "empty", Priority: 9}, have}, "p.v1.0.0 from have",
		},
		"no catalogs": {"that is no special case", resolver.Query{}, nil, `no bundles found for package "p"`},
		"a package without bundles": {
			"a channel alone installs nothing", resolver.Query{}, one(catalog.Package{Channels: []catalog.Channel{channel("a")}}),
			`no bundles found for package "p"`,
		},
		"a catalog that cannot be read fails the resolution": {
			"otherwise its state would be a hidden input", resolver.Query{},
			[]resolver.Catalog{have, {Name: "broken", Problem: errors.New("not unpacked yet")}},
			`error walking catalogs: error getting package "p" from catalog "broken": not unpacked yet`,
		},
		"an unreadable installed version counts only where a catalog has the package": {
			"OLM v1 reads it for each catalog with the package", resolver.Query{Installed: installed("x")},
			[]resolver.Catalog{{Name: "empty"}}, `error upgrading from currently installed version "x": no bundles found for package "p"`,
		},
	})
}

// TestC5Ranges is the table of the API comment of OLM v1's CatalogFilter, and what it does not say.
func TestC5Ranges(t *testing.T) {
	all := []string{"0.9.0", "1.0.0", "1.2.2", "1.2.3", "1.2.9", "1.3.0", "1.9.0", "2.0.0", "2.1.0-rc.1", "3.0.0"}
	for text, want := range map[string]string{
		"":                 "3.0.0",
		"1.2.3":            "1.2.3",
		"=1.2.3":           "1.2.3",
		">1.2.3":           "3.0.0",
		"<1.2.3":           "1.2.2",
		">=1.2.3":          "3.0.0",
		"<=1.2.3":          "1.2.3",
		"!=3.0.0":          "2.0.0",
		">=1.2.3, <2.0.0":  "1.9.0",
		">=1.2.3 <2.0.0":   "1.9.0",
		">=1.2.3,<2.0.0":   "1.9.0",
		"<1.0.0 || =1.2.2": "1.2.2",
		"1.2.2 - 1.2.9":    "1.2.9",
		"1.2.x":            "1.2.9",
		"1.2.*":            "1.2.9",
		"1.x":              "1.9.0",
		"1.X":              "1.9.0",
		"*":                "3.0.0",
		">=1.x":            "3.0.0",
		"<=2.x":            "2.0.0",
		"~1.2.3":           "1.2.9",
		"~1":               "1.9.0",
		"~1.2":             "1.2.9",
		"^1.2.3":           "1.9.0",
		"^0.9":             "0.9.0",
		"^2.0":             "2.0.0", // 2.1.0-rc.1 is a prerelease
		"^2.1.0-0":         "2.1.0-rc.1",
		">=2.1.0-rc.1 <3":  "2.1.0-rc.1",
		"v1.2.3":           "1.2.3",
		"1.2.3+7":          "1.2.3",
	} {
		got := chosen(t, resolver.Query{Range: text}, catalogWith("c", 0, catalog.Package{Bundles: versions(all...)}))
		if got != "p.v"+want+" from c" {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	prerelease := one(catalog.Package{Bundles: versions("1.0.0", "2.0.0-rc.1")})
	check(t, map[string]rule{
		"an empty range contains prereleases": {"as in OLM v1", resolver.Query{}, prerelease, "p.v2.0.0-rc.1 from c"},
		"* does not":                          {"as in OLM v1", resolver.Query{Range: "*"}, prerelease, "p.v1.0.0 from c"},
		"it cannot be parsed": {
			"the text is that of Masterminds/semver", resolver.Query{Range: "nonsense"}, prerelease,
			`desired version range "nonsense" is invalid: improper constraint: "nonsense"`,
		},
		"it is read before the catalogs": {
			"as in OLM v1", resolver.Query{Range: ">="}, []resolver.Catalog{{Name: "broken", Problem: errors.New("x")}},
			`desired version range ">=" is invalid: improper constraint: ">="`,
		},
		"255 characters":      {"the limit", resolver.Query{Range: strings.Repeat(" ", 250) + "1.0.0"}, prerelease, "p.v1.0.0 from c"},
		"a space is no range": {"only an empty range contains all", resolver.Query{Range: " "}, prerelease, `desired version range " " is invalid: improper constraint: " "`},
	})
	got := chosen(t, resolver.Query{Range: strings.Repeat(" ", 251) + "1.0.0"}, prerelease...)
	if !strings.HasSuffix(got, "is invalid: it is longer than 255 characters") {
		t.Errorf("256 characters: got %s", got)
	}
}

// TestC6Releases is about build metadata, which reads as a release or counts for nothing (R3).
func TestC6Releases(t *testing.T) {
	check(t, map[string]rule{
		"a higher release":               {"1.0.0+2 is a release after 1.0.0+1", resolver.Query{}, one(catalog.Package{Bundles: versions("1.0.0+1", "1.0.0+2", "1.0.0")}), "p.v1.0.0+2 from c"},
		"numbers are compared as such":   {"10 > 9", resolver.Query{}, one(catalog.Package{Bundles: versions("1.0.0+9", "1.0.0+10")}), "p.v1.0.0+10 from c"},
		"letters are higher than digits": {"as prereleases are compared", resolver.Query{}, one(catalog.Package{Bundles: versions("1.0.0+git.abc", "1.0.0+9")}), "p.v1.0.0+git.abc from c"},
		"20 characters are a release": {
			"the limit", resolver.Query{}, one(catalog.Package{Bundles: versions("1.0.0", "1.0.0+abcdefghij.123456789")}), "p.v1.0.0+abcdefghij.123456789 from c",
		},
		"21 characters are none": {
			"they are equal then, and the order of the catalog counts", resolver.Query{},
			one(catalog.Package{Bundles: versions("1.0.0", "1.0.0+abcdefghij.1234567890")}), "p.v1.0.0 from c",
		},
		"leading zeros are none": {
			"they are equal then", resolver.Query{}, one(catalog.Package{Bundles: versions("1.0.0", "1.0.0+01")}), "p.v1.0.0 from c",
		},
		"a range does not see the release": {
			"the release is no part of the version", resolver.Query{Range: "1.0.0"}, one(catalog.Package{Bundles: versions("1.0.0+1", "1.0.0+2")}), "p.v1.0.0+2 from c",
		},
		"another release is no stay": {
			"only an edge leads to it", resolver.Query{Installed: installed("1.0.0+1")}, one(catalog.Package{Bundles: versions("1.0.0+2")}),
			`error upgrading from currently installed version "1.0.0+1": no bundles found for package "p"`,
		},
	})
	for version, want := range map[string][2]string{
		"1.0.0+2": {"1.0.0", "2"}, "1.0.0+git.abc": {"1.0.0", "git.abc"}, "1.0.0+01": {"1.0.0+01", ""}, "1.0.0-rc.1": {"1.0.0-rc.1", ""},
	} {
		answer, err := resolver.Resolve(resolver.Query{Package: "p"}, one(catalog.Package{Bundles: versions(version)}))
		if got := [2]string{answer.Version, answer.Release}; err != nil || got != want {
			t.Errorf("%s: got %q %v, want %q", version, got, err, want)
		}
	}
}

// TestC8Versions is about bundles without a version: in no range, equal to nothing, last, and refused if chosen.
func TestC8Versions(t *testing.T) {
	none := catalog.Bundle{Name: "none", VersionProblem: `no package property found in bundle "none"`}
	bad := catalog.Bundle{Name: "bad", Version: "v1.0"}
	with := one(catalog.Package{Bundles: append([]catalog.Bundle{none, bad}, versions("0.0.1-a")...)})
	check(t, map[string]rule{
		"last":             {"any version is better than none", resolver.Query{}, with, "p.v0.0.1-a from c"},
		"in no range":      {"it cannot be compared", resolver.Query{Range: ">=0.0.0-0"}, with, "p.v0.0.1-a from c"},
		"missing, chosen":  {"the text is OLM v1's", resolver.Query{}, one(catalog.Package{Bundles: []catalog.Bundle{none}}), `error getting resolved bundle version for bundle "none": no package property found in bundle "none"`},
		"bad, chosen":      {"the text is blang/semver's", resolver.Query{}, one(catalog.Package{Bundles: []catalog.Bundle{bad}}), `error getting resolved bundle version for bundle "bad": No Major.Minor.Patch elements found`},
		"empty, chosen":    {"the text is blang/semver's", resolver.Query{}, one(catalog.Package{Bundles: []catalog.Bundle{{Name: "e"}}}), `error getting resolved bundle version for bundle "e": Version string empty`},
		"the first counts": {"among those without a version the order of the catalog decides", resolver.Query{}, one(catalog.Package{Bundles: []catalog.Bundle{bad, none}}), `error getting resolved bundle version for bundle "bad": No Major.Minor.Patch elements found`},
		"an edge leads to it": {
			"edges are between names", resolver.Query{Installed: installed("1.0.0")},
			one(catalog.Package{Bundles: []catalog.Bundle{bad}, Channels: []catalog.Channel{channel("a", replaces("bad", "p.v1.0.0"))}}),
			`error getting resolved bundle version for bundle "bad": No Major.Minor.Patch elements found`,
		},
	})
}

// TestC9Channels is about bundles in channels, in none, and entries without a bundle (R4).
func TestC9Channels(t *testing.T) {
	p := one(catalog.Package{
		Bundles: versions("1.0.0", "2.0.0", "3.0.0", "4.0.0"),
		Channels: []catalog.Channel{
			channel("a", entry("p.v1.0.0"), entry("p.v9.0.0")), channel("b", entry("p.v2.0.0")), channel("c", entry("p.v3.0.0")), channel("empty"),
		},
	})
	query := func(channels ...string) resolver.Query { return resolver.Query{Channels: channels} }
	check(t, map[string]rule{
		"none given":              {"bundles in no channel are candidates", query(), p, "p.v4.0.0 from c"},
		"one":                     {"the entry without a bundle counts for nothing", query("a"), p, "p.v1.0.0 from c"},
		"several":                 {"any of them will do", query("a", "b"), p, "p.v2.0.0 from c"},
		"one of them is unknown":  {"any of them will do", query("zz", "b"), p, "p.v2.0.0 from c"},
		"an empty one":            {"it has no entries", query("empty"), p, `no bundles found for package "p" in channels [empty]`},
		"unknown":                 {"the text lists them", query("x", "y"), p, `no bundles found for package "p" in channels [x y]`},
		"same version twice":      {"the first in the order of the catalog", query(), one(catalog.Package{Bundles: []catalog.Bundle{{Name: "x", Version: "1.0.0"}, {Name: "y", Version: "1.0.0"}}}), "x from c"},
		"a channel that is twice": {"both count", query("a"), one(catalog.Package{Bundles: versions("1.0.0", "2.0.0"), Channels: []catalog.Channel{channel("a", entry("p.v1.0.0")), channel("a", entry("p.v2.0.0"))}}), "p.v2.0.0 from c"},
	})
}

// TestR5Successors is about edges from what is installed, and C7 about skipRange.
func TestR5Successors(t *testing.T) {
	edges := func(entries ...catalog.Entry) []resolver.Catalog {
		return one(catalog.Package{Bundles: versions("1.0.0", "2.0.0", "3.0.0"), Channels: []catalog.Channel{channel("a", entries...)}})
	}
	from := resolver.Query{Installed: installed("1.0.0")}
	skipRange := func(text string) catalog.Entry { return catalog.Entry{Name: "p.v2.0.0", SkipRange: text} }
	const stays, goes = "p.v1.0.0 from c", "p.v2.0.0 from c"
	check(t, map[string]rule{
		"replaces":                 {"an edge", from, edges(replaces("p.v2.0.0", "p.v1.0.0")), goes},
		"replaces another":         {"no edge", from, edges(replaces("p.v2.0.0", "p.v1.0.1")), stays},
		"skips":                    {"an edge", from, edges(catalog.Entry{Name: "p.v2.0.0", Skips: []string{"x", "p.v1.0.0"}}), goes},
		"no hops":                  {"3.0.0 replaces 2.0.0, which has to be installed first", from, edges(replaces("p.v2.0.0", "p.v1.0.0"), replaces("p.v3.0.0", "p.v2.0.0")), goes},
		"no edge: stay":            {"the installed version is always a successor", from, edges(), stays},
		"skipRange":                {"an edge", from, edges(skipRange(">=0.9.0 <2.0.0")), goes},
		"skipRange without it":     {"no edge", from, edges(skipRange(">1.0.0")), stays},
		"skipRange unreadable":     {"it counts for nothing", from, edges(skipRange("not a range")), stays},
		"skipRange of Masterminds": {"blang/semver reads no commas", from, edges(skipRange(">=0.9.0, <2.0.0")), stays},
		"a long skipRange":         {"257 characters count for nothing", from, edges(skipRange(strings.Repeat(" ", 249) + ">=0.9.0 ")), stays},
		"the edge is in another channel": {
			"edges are those of the given channels",
			resolver.Query{Installed: installed("1.0.0"), Channels: []string{"b"}},
			one(catalog.Package{Bundles: versions("2.0.0"), Channels: []catalog.Channel{channel("a", replaces("p.v2.0.0", "p.v1.0.0")), channel("b", entry("p.v2.0.0"))}}),
			`error upgrading from currently installed version "1.0.0": no bundles found for package "p" in channels [b]`,
		},
		"a lower version": {"the graph is its author's word", resolver.Query{Installed: installed("3.0.0"), Range: "2.x"}, edges(replaces("p.v2.0.0", "p.v3.0.0")), goes},
		"the installed bundle is not in the catalog": {"it need not be", resolver.Query{Installed: installed("0.1.0")}, edges(replaces("p.v2.0.0", "p.v0.1.0")), goes},
		"the same version under another name": {
			"version and release count", resolver.Query{Installed: &resolver.Installed{Bundle: "other", Version: "1.0.0"}}, edges(), stays,
		},
		"it cannot be read": {
			"the edges of skipRange are unknown", resolver.Query{Installed: installed("1.0")}, edges(),
			"error walking catalogs: error finding upgrade edges: failed to get version and release of installed bundle: No Major.Minor.Patch elements found",
		},
	})
	prerelease := func(version, skip string) []resolver.Catalog {
		return one(catalog.Package{Bundles: versions(version), Channels: []catalog.Channel{channel("a", catalog.Entry{Name: "p.v" + version, SkipRange: skip})}})
	}
	check(t, map[string]rule{
		"C7 a prerelease is compared":  {"blang/semver orders it before its release", resolver.Query{Installed: installed("1.0.0-rc.1")}, prerelease("2.0.0", "<1.0.0"), "p.v2.0.0 from c"},
		"C7 build metadata is ignored": {"it counts for nothing in comparisons", resolver.Query{Installed: installed("1.0.0+5")}, prerelease("2.0.0", "=1.0.0"), "p.v2.0.0 from c"},
	})
}

// TestR6Order is about deprecated bundles.
func TestR6Order(t *testing.T) {
	p := one(catalog.Package{Bundles: versions("1.0.0", "3.0.0", "2.0.0"), Deprecations: deprecated("p.v3.0.0")})
	check(t, map[string]rule{
		"a deprecated bundle is last":        {"a lower version is better", resolver.Query{}, p, "p.v2.0.0 from c"},
		"a deprecated bundle is a candidate": {"if there is no other", resolver.Query{Range: ">2"}, p, "p.v3.0.0 from c"},
		"a deprecated channel demotes nothing": {"only bundles do", resolver.Query{}, one(catalog.Package{
			Bundles: versions("1.0.0", "2.0.0"), Channels: []catalog.Channel{channel("a", entry("p.v2.0.0"))},
			Deprecations: []catalog.Deprecation{{Schema: catalog.SchemaChannel, Name: "a"}, {Schema: catalog.SchemaPackage}},
		}), "p.v2.0.0 from c"},
	})
}

// TestC10Catalogs is about several catalogs (R7, R8).
func TestC10Catalogs(t *testing.T) {
	fresh := func(name string, priority int32, all ...string) resolver.Catalog {
		return catalogWith(name, priority, catalog.Package{Bundles: versions(all...)})
	}
	old := func(name string, priority int32, version string) resolver.Catalog {
		return catalogWith(name, priority, catalog.Package{Bundles: versions(version), Deprecations: deprecated("p.v" + version)})
	}
	check(t, map[string]rule{
		"the highest priority": {"the version does not count", resolver.Query{}, []resolver.Catalog{fresh("a", 0, "9.0.0"), fresh("b", 1, "1.0.0"), fresh("c", -1, "8.0.0")}, "p.v1.0.0 from b"},
		"a tie": {"there is no better one", resolver.Query{}, []resolver.Catalog{fresh("b", 1, "9.0.0"), fresh("a", 1, "1.0.0")},
			`found bundles for package "p" in multiple catalogs with the same priority [a b]`},
		"a tie of the same version and image": {"tags tell nothing", resolver.Query{}, []resolver.Catalog{fresh("b", 0, "1.0.0"), fresh("a", 0, "1.0.0")},
			`found bundles for package "p" in multiple catalogs with the same priority [a b]`},
		"a tie with a lower one": {"OLM v1 lists all candidates", resolver.Query{}, []resolver.Catalog{fresh("b", 1, "1.0.0"), fresh("a", 1, "1.0.0"), fresh("z", 0, "1.0.0")},
			`found bundles for package "p" in multiple catalogs with the same priority [a b z]`},
		"a tie below the highest": {"it does not count", resolver.Query{}, []resolver.Catalog{fresh("a", 0, "1.0.0"), fresh("b", 0, "1.0.0"), fresh("z", 1, "1.0.0")}, "p.v1.0.0 from z"},
		"deprecated, high":        {"a candidate that is not deprecated wins", resolver.Query{}, []resolver.Catalog{old("a", 9, "9.0.0"), fresh("b", 0, "1.0.0")}, "p.v1.0.0 from b"},
		"deprecated, in a tie":    {"it is dropped before the priorities", resolver.Query{}, []resolver.Catalog{old("a", 0, "9.0.0"), fresh("b", 0, "1.0.0"), old("c", 0, "1.0.0")}, "p.v1.0.0 from b"},
		"all deprecated":          {"priorities decide", resolver.Query{}, []resolver.Catalog{old("a", 1, "1.0.0"), old("b", 0, "2.0.0")}, "p.v1.0.0 from a"},
		"no second choice":        {"b is the only one left, and its first has no version", resolver.Query{}, []resolver.Catalog{catalogWith("b", 1, catalog.Package{Bundles: []catalog.Bundle{{Name: "bad", Version: "x"}}}), fresh("a", 0, "1.0.0")}, `error getting resolved bundle version for bundle "bad": No Major.Minor.Patch elements found`},
		"one without a candidate": {"it does not take part", resolver.Query{Range: "1.x"}, []resolver.Catalog{fresh("a", 5, "2.0.0"), fresh("b", 0, "1.0.0")}, "p.v1.0.0 from b"},
	})
}

// TestC11Deprecations wants those of the winner's catalog, and only what concerns the query.
func TestC11Deprecations(t *testing.T) {
	all := []catalog.Deprecation{
		{Schema: catalog.SchemaPackage, Message: "package"}, {Schema: catalog.SchemaChannel, Name: "a", Message: "channel a"},
		{Schema: catalog.SchemaChannel, Name: "b", Message: "channel b"}, {Schema: catalog.SchemaBundle, Name: "p.v1.0.0", Message: "bundle"},
		{Schema: catalog.SchemaBundle, Name: "p.v2.0.0", Message: "another bundle"}, {Schema: "unknown", Name: "p.v1.0.0", Message: "?"},
	}
	channels := []catalog.Channel{channel("a", entry("p.v1.0.0")), channel("b", entry("p.v1.0.0"))}
	winner := catalogWith("winner", 1, catalog.Package{Bundles: versions("1.0.0"), Channels: channels, Deprecations: all})
	loser := catalogWith("z-loser", 0, catalog.Package{
		Bundles: versions("1.0.0"), Channels: channels,
		Deprecations: append(deprecated("p.v1.0.0"), catalog.Deprecation{Schema: catalog.SchemaPackage, Message: "of the loser"}),
	})
	for name, c := range map[string]struct {
		channels []string
		want     []string
	}{
		"no channel": {nil, []string{"package", "bundle"}},
		"a channel":  {[]string{"a"}, []string{"package", "channel a", "bundle"}},
	} {
		answer, err := resolver.Resolve(resolver.Query{Package: "p", Channels: c.channels}, []resolver.Catalog{winner, loser})
		if err != nil || answer.Catalog != "winner" {
			t.Fatalf("%s: got %q, %v", name, answer.Catalog, err)
		}
		var got []string
		for _, d := range answer.Deprecations {
			got = append(got, d.Message)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestR12Mirrors is about the same image digest in several catalogs.
func TestR12Mirrors(t *testing.T) {
	mirror := func(name string, priority int32, bundle, version, image string) resolver.Catalog {
		return catalogWith(name, priority, catalog.Package{Bundles: []catalog.Bundle{{Name: bundle, Version: version, Image: image}}})
	}
	const tie = `found bundles for package "p" in multiple catalogs with the same priority [a b]`
	a := mirror("a", 0, "p.v1.0.0", "1.0.0", "quay.io/org/p@sha256:11")
	check(t, map[string]rule{
		"the same digest":                 {"a mirror beside its origin", resolver.Query{}, []resolver.Catalog{mirror("b", 0, "p.v1.0.0", "1.0.0", "mirror.corp/p@sha256:11"), a}, "p.v1.0.0 from a"},
		"as OLM v1":                       {"R12 is off", resolver.Query{RefuseMirrors: true}, []resolver.Catalog{a, mirror("b", 0, "p.v1.0.0", "1.0.0", "mirror.corp/p@sha256:11")}, tie},
		"another digest":                  {"another image", resolver.Query{}, []resolver.Catalog{a, mirror("b", 0, "p.v1.0.0", "1.0.0", "quay.io/org/p@sha256:22")}, tie},
		"another version":                 {"not the same bundle", resolver.Query{}, []resolver.Catalog{a, mirror("b", 0, "p.v1.0.1", "1.0.1", "quay.io/org/p@sha256:11")}, tie},
		"another release":                 {"not the same bundle", resolver.Query{}, []resolver.Catalog{a, mirror("b", 0, "p.v1.0.0", "1.0.0+1", "quay.io/org/p@sha256:11")}, tie},
		"a tag":                           {"it may be another image", resolver.Query{}, []resolver.Catalog{a, mirror("b", 0, "p.v1.0.0", "1.0.0", "quay.io/org/p:v1")}, tie},
		"a higher priority with the same": {"no tie at all", resolver.Query{}, []resolver.Catalog{a, mirror("b", 1, "p.v1.0.0", "1.0.0", "quay.io/org/p@sha256:11")}, "p.v1.0.0 from b"},
	})
	answer, err := resolver.Resolve(resolver.Query{Package: "p"}, []resolver.Catalog{mirror("b", 0, "p.v1.0.0", "1.0.0", "m/p@sha256:11"), a})
	if err != nil || !cmp.Equal(answer.Mirrors, []string{"b"}) {
		t.Errorf("got the mirrors %v, %v", answer.Mirrors, err)
	}
}

// TestR13Downgrade is about lower versions with SelfCertified.
func TestR13Downgrade(t *testing.T) {
	p := one(catalog.Package{Bundles: versions("1.0.0", "2.0.0+1", "2.0.0+2", "3.0.0")})
	query := func(downgrade resolver.Downgrade, text, from string) resolver.Query {
		return resolver.Query{UpgradePolicy: resolver.SelfCertified, Downgrade: downgrade, Range: text, Installed: installed(from)}
	}
	const refused = `error upgrading from currently installed version "2.0.0+2": no bundles found for package "p" matching version "<2"`
	check(t, map[string]rule{
		"up, without an edge": {"SelfCertified needs none", query(resolver.DowngradeRefuse, "", "2.0.0+2"), p, "p.v3.0.0 from c"},
		"stay":                {"that is not lower", query(resolver.DowngradeRefuse, "2.0.0", "2.0.0+2"), p, "p.v2.0.0+2 from c"},
		"down":                {"Refuse", query(resolver.DowngradeRefuse, "<2", "2.0.0+2"), p, refused},
		"down by default":     {"Refuse is the default", query("", "<2", "2.0.0+2"), p, refused},
		"down, allowed":       {"Allow", query(resolver.DowngradeAllow, "<2", "2.0.0+2"), p, "p.v1.0.0 from c"},
		"unreadable, allowed": {"nothing is compared with it", query(resolver.DowngradeAllow, "", "x"), p, "p.v3.0.0 from c"},
		"unreadable": {"what is lower is unknown", query(resolver.DowngradeRefuse, "", "x"), p,
			`error comparing with the installed version "x": No Major.Minor.Patch elements found`},
	})
}
