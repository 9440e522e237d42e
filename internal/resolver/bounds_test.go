// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// large is a package at the limits of the catalog reader.
func large(entries, skips int, skipRange func(i int) string) catalog.Package {
	var p catalog.Package
	c := catalog.Channel{Name: "a"}
	skipped := make([]string, 0, skips)
	for i := range skips {
		skipped = append(skipped, fmt.Sprintf("p.v0.9.%d", i))
	}
	for i := range entries {
		name := fmt.Sprintf("p.v1.0.%d", i)
		p.Bundles = append(p.Bundles, catalog.Bundle{Name: name, Version: strings.TrimPrefix(name, "p.v"), Image: "i:" + strconv.Itoa(i)})
		e := catalog.Entry{Name: name, Replaces: fmt.Sprintf("p.v1.0.%d", i-1), Skips: skipped}
		if skipRange != nil {
			e.SkipRange = skipRange(i)
		}
		c.Entries = append(c.Entries, e)
	}
	p.Channels = []catalog.Channel{c}
	return p
}

// fastest returns the shortest of some runs: others use the processor as well.
func fastest(runs int, run func()) time.Duration {
	least := time.Hour
	for range runs {
		begin := time.Now()
		run()
		least = min(least, time.Since(begin))
	}
	return least
}

// TestC20BoundedTime resolves a package at the limits. The aim is 50 ms for 10,000 entries with 1,000 skips each; the
// limits of the test are larger, because it runs beside others.
func TestC20BoundedTime(t *testing.T) {
	query := resolver.Query{Package: "p", Range: ">=1.0.0-0", Channels: []string{"a"}, Installed: installed("0.5.0")}
	for name, c := range map[string]struct {
		catalog resolver.Catalog
		limit   time.Duration
	}{
		"skips":     {catalogWith("c", 0, large(10_000, 1_000, nil)), 300 * time.Millisecond},
		"skipRange": {catalogWith("c", 0, large(10_000, 0, func(i int) string { return fmt.Sprintf(">=0.6.0 <1.0.%d || =0.5.%d", i, i+1) })), 600 * time.Millisecond},
		"long skipRange": {catalogWith("c", 0, large(10_000, 0, func(i int) string {
			return fmt.Sprintf("=2.0.%d", i) + strings.Repeat(" || 3.x.x", 27)
		})), 10 * time.Second},
	} {
		if name == "long skipRange" && os.Getenv("SATCHEL_FULL") == "" {
			continue // the same code, for seconds
		}
		for _, wants := range []string{"resolved", "refused"} {
			q := query
			if wants == "resolved" {
				q.Installed = &resolver.Installed{Bundle: "p.v1.0.0", Version: "0.5.0"} // an edge from the first entry only
			}
			took := fastest(3, func() {
				_, err := resolver.Resolve(q, []resolver.Catalog{c.catalog})
				if (err == nil) != (wants == "resolved") {
					t.Errorf("%s, %s: got %v", name, wants, err)
				}
			})
			t.Logf("%s, %s: %s", name, wants, took)
			if took > c.limit {
				t.Errorf("%s, %s: %s, want at most %s", name, wants, took, c.limit)
			}
		}
	}
}

// TestResolveIsFast resolves a package of usual size: 100 bundles in 3 channels. The aim is 1 ms.
func TestResolveIsFast(t *testing.T) {
	p := large(100, 5, func(int) string { return ">=0.9.0 <1.0.0" })
	p.Channels = append(p.Channels, catalog.Channel{Name: "b", Entries: p.Channels[0].Entries}, catalog.Channel{Name: "c", Entries: p.Channels[0].Entries})
	query := resolver.Query{Package: "p", Range: ">=1.0.0 <2.0.0", Channels: []string{"b"}, Installed: installed("1.0.42")}
	took := fastest(20, func() {
		if _, err := resolver.Resolve(query, []resolver.Catalog{catalogWith("c", 0, p)}); err != nil {
			t.Error(err)
		}
	})
	t.Log(took)
	if took > 6*time.Millisecond {
		t.Errorf("resolving took %s, want at most 6 ms", took)
	}
}

// FuzzResolve looks for ranges, versions and edges that panic, take long, or give an answer that cannot be described.
func FuzzResolve(f *testing.F) {
	f.Add(">=1.0.0", "1.0.0", "p.v1.0.0", ">=0.1.0 <1.0.0", "2.0.0+1", "a")
	f.Add("1.x || ~2", "0.0.0-0", "", "<1.x.x || !2.0.0", "1.0.0+01", "")
	f.Add("1.2.3 - 2", "x", "p", "not a range", "99999999999999999999.0.0", "\n")
	f.Fuzz(func(t *testing.T, versions, have, name, skipRange, version, channelName string) {
		for _, text := range []string{versions, have, name, skipRange, version, channelName} {
			if len(text) > 1000 {
				return
			}
		}
		p := catalog.Package{
			Bundles:      []catalog.Bundle{{Name: name, Version: version}, {Name: "p.v1.0.0", Version: "1.0.0"}},
			Channels:     []catalog.Channel{channel(channelName, catalog.Entry{Name: "p.v1.0.0", SkipRange: skipRange}, catalog.Entry{Name: name, Replaces: "p.v1.0.0", SkipRange: skipRange})},
			Deprecations: deprecated(name),
		}
		for _, policy := range []resolver.UpgradePolicy{resolver.CatalogProvided, resolver.SelfCertified} {
			q := resolver.Query{Package: "p", Range: versions, Channels: []string{channelName}, UpgradePolicy: policy, Installed: &resolver.Installed{Bundle: name, Version: have}}
			begin := time.Now()
			answer, err := resolver.Resolve(q, []resolver.Catalog{catalogWith("a", 0, p), catalogWith("b", 0, p)})
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
			refusal := new(resolver.RefusalError)
			switch {
			case err == nil && answer.Bundle != name && answer.Bundle != "p.v1.0.0":
				t.Errorf("got the bundle %q", answer.Bundle)
			case err != nil && (!errors.As(err, &refusal) || refusal.Text == "" || refusal.Remedy == "" || len(refusal.Details()) == 0):
				t.Errorf("got %#v", err)
			}
		}
	})
}
