// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/resolver"
)

var update = flag.Bool("update", false, "regenerate the golden files")

// graph is a package with channels, edges, a prerelease, a release, and deprecations.
func graph() catalog.Package {
	return catalog.Package{
		Bundles: versions("1.0.0", "1.1.0", "1.2.0", "2.0.0", "2.1.0+1", "3.0.0-rc.1"),
		Channels: []catalog.Channel{
			channel("slow", entry("p.v1.0.0"), replaces("p.v1.1.0", "p.v1.0.0"), replaces("p.v2.0.0", "p.v1.2.0")),
			channel("fast", catalog.Entry{Name: "p.v1.2.0", Replaces: "p.v1.1.0", SkipRange: ">=1.0.0 <1.2.0"}, replaces("p.v2.0.0", "p.v1.2.0"), replaces("p.v2.1.0+1", "p.v2.0.0")),
			channel("next", replaces("p.v3.0.0-rc.1", "p.v2.1.0+1")),
		},
	}
}

// TestC12Refusals shows each text with its details.
func TestC12Refusals(t *testing.T) {
	community := catalogWith("community", 0, graph())
	own := catalogWith("own", 0, catalog.Package{Bundles: versions("1.0.0"), Deprecations: deprecated("p.v1.0.0")})
	certified := resolver.Query{UpgradePolicy: resolver.SelfCertified, Installed: installed("2.0.0")}
	certified.Range = "1.x"
	var text strings.Builder
	for _, c := range []struct {
		name     string
		query    resolver.Query
		catalogs []resolver.Catalog
	}{
		{"no catalogs", resolver.Query{}, nil},
		{"no catalog has the package", resolver.Query{}, []resolver.Catalog{{Name: "a"}, {Name: "b", Priority: 3}}},
		{"no bundle with a version", resolver.Query{Range: "1.x"}, []resolver.Catalog{catalogWith("a", 0, catalog.Package{Bundles: []catalog.Bundle{{Name: "bad"}}})}},
		{"range is invalid", resolver.Query{Range: "latest"}, []resolver.Catalog{community}},
		{"installed version is unreadable", resolver.Query{Installed: installed("latest")}, []resolver.Catalog{community}},
		{"a catalog is not ready", resolver.Query{}, []resolver.Catalog{community, {Name: "second", Problem: errors.New("it was never unpacked")}}},
		{"outside of the range", resolver.Query{Range: "~2.5"}, []resolver.Catalog{community, {Name: "empty"}}},
		{"a prerelease", resolver.Query{Range: ">2.1.0"}, []resolver.Catalog{community}},
		{"outside of the channels", resolver.Query{Channels: []string{"slow"}, Range: "2.1.x"}, []resolver.Catalog{community}},
		{"in no channel", resolver.Query{Channels: []string{"a"}}, []resolver.Catalog{own}},
		{"channels and range", resolver.Query{Channels: []string{"slow"}, Range: ">=3"}, []resolver.Catalog{community}},
		{"no edge", resolver.Query{Range: "2.1.x", Installed: installed("1.0.0")}, []resolver.Catalog{community}},
		{"the edge is in another channel", resolver.Query{Channels: []string{"slow"}, Range: ">=1.2", Installed: installed("1.1.0")}, []resolver.Catalog{community}},
		{"no edge at all", resolver.Query{Range: ">1", Installed: installed("0.5.0")}, []resolver.Catalog{community}},
		{"downgrade", certified, []resolver.Catalog{community}},
		{"ambiguous", resolver.Query{Range: "1.0.0", Channels: []string{"slow", "fast"}, Installed: installed("1.0.0")}, []resolver.Catalog{community, catalogWith("copy", 0, graph())}},
		{"the version is unreadable", resolver.Query{}, []resolver.Catalog{catalogWith("a", 0, catalog.Package{Bundles: []catalog.Bundle{{Name: "bad", Version: "1"}}})}},
	} {
		c.query.Package = "p"
		answer, err := resolver.Resolve(c.query, c.catalogs)
		var refusal *resolver.RefusalError
		if !errors.As(err, &refusal) {
			t.Errorf("%s: got %+v, %v", c.name, answer, err)
			continue
		}
		fmt.Fprintf(&text, "# %s\n%s: %s\n", c.name, refusal.Reason, refusal)
		for _, line := range refusal.Details() {
			fmt.Fprintf(&text, "    %s\n", line)
		}
	}
	golden(t, "refusals", text.String())
}

// TestAnswers shows what is said of bundles that were chosen.
func TestAnswers(t *testing.T) {
	community := catalogWith("community", 0, graph())
	old := graph()
	old.Deprecations = deprecated("p.v3.0.0-rc.1", "p.v2.1.0+1")
	var text strings.Builder
	for _, c := range []struct {
		name     string
		query    resolver.Query
		catalogs []resolver.Catalog
	}{
		{"newest", resolver.Query{}, []resolver.Catalog{community}},
		{"range", resolver.Query{Range: "~1.1"}, []resolver.Catalog{community}},
		{"channel", resolver.Query{Channels: []string{"slow"}}, []resolver.Catalog{community}},
		{"hop", resolver.Query{Installed: installed("1.0.0")}, []resolver.Catalog{community}},
		{"deprecated", resolver.Query{}, []resolver.Catalog{catalogWith("old", 0, old)}},
		{"priority", resolver.Query{}, []resolver.Catalog{community, catalogWith("first", 7, catalog.Package{Bundles: versions("1.0.0")}), {Name: "without"}}},
	} {
		c.query.Package = "p"
		answer, err := resolver.Resolve(c.query, c.catalogs)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		fmt.Fprintf(&text, "# %s\n%s %s %q from %s, channels %v\n", c.name, answer.Bundle, answer.Version, answer.Release, answer.Catalog, answer.Channels)
		for _, funnel := range answer.Funnel {
			fmt.Fprintf(&text, "    %s\n", funnel)
		}
		if answer.Newest != nil {
			fmt.Fprintf(&text, "    newest: %s\n", answer.Newest)
		}
	}
	golden(t, "answers", text.String())
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; write it with: go test ./internal/resolver -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; if that is intended, regenerate it with: go test ./internal/resolver -update\n-want +got:\n%s", file, diff)
	}
}
