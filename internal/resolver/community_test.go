// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// community reads all packages of the public catalog of the corpus.
func community(t *testing.T) []*catalog.Package {
	t.Helper()
	if os.Getenv("SATCHEL_FULL") == "" {
		t.Skip("the public catalog takes seconds to read: set SATCHEL_FULL=1")
	}
	packed, err := filepath.Abs(filepath.Join("..", "..", "..", "shared", "corpus", "catalog", "community.jsonl.xz"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(packed); err != nil {
		t.Skip("the public catalog is not beside the repository (../shared/corpus/catalog), so nothing is resolved from it")
	}
	xz, err := exec.LookPath("xz")
	if err != nil {
		t.Skip("there is no xz to unpack the public catalog")
	}
	dir := t.TempDir()
	unpacked, err := os.Create(filepath.Join(dir, "catalog.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer unpacked.Close()
	command := exec.CommandContext(t.Context(), xz, "--decompress", "--stdout", packed)
	command.Stdout = unpacked
	if err := command.Run(); err != nil {
		t.Fatal(err)
	}
	return readAll(t, os.DirFS(dir))
}

// readAll reads all packages of a catalog.
func readAll(t *testing.T, files fs.FS) []*catalog.Package {
	t.Helper()
	builders := map[string]*fbc.Builder{}
	var names []string
	err := fbc.Walk(files, ".", fbc.DefaultLimits(), func(blob fbc.Blob) error {
		if builders[blob.Package] == nil {
			builders[blob.Package] = fbc.NewBuilder(blob.Package, fbc.DefaultLimits())
			names = append(names, blob.Package)
		}
		builders[blob.Package].Add(blob)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []*catalog.Package
	for _, name := range names {
		p, err := builders[name].Package()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, p)
	}
	return all
}

// expected is the bundle and the catalog that spec chooses: empty for none or a tie.
func (s spec) expected(catalogs []resolver.Catalog) string {
	type offer struct {
		bundle  catalog.Bundle
		catalog resolver.Catalog
		old     bool
	}
	var offers []offer
	for _, c := range catalogs {
		var best *offer
		for _, b := range c.Package.Bundles {
			o := offer{b, c, s.deprecated(c.Package, b)}
			if s.passes(c.Package, b) && (best == nil || best.old && !o.old || best.old == o.old && s.order(b, best.bundle) > 0) {
				best = &o
			}
		}
		if best != nil {
			offers = append(offers, *best)
		}
	}
	if slices.ContainsFunc(offers, func(o offer) bool { return !o.old }) {
		offers = slices.DeleteFunc(offers, func(o offer) bool { return o.old })
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return int(b.catalog.Priority - a.catalog.Priority) })
	if len(offers) == 0 || len(offers) > 1 && offers[0].catalog.Priority == offers[1].catalog.Priority {
		return ""
	}
	return offers[0].bundle.Name + " from " + offers[0].catalog.Name
}

// part is a package with some of its bundles and generated deprecations.
func part(p *catalog.Package, random *rand.Rand) *catalog.Package {
	q := &catalog.Package{Name: p.Name, Channels: p.Channels}
	for _, b := range p.Bundles {
		if random.IntN(3) > 0 {
			q.Bundles = append(q.Bundles, b)
		}
		if random.IntN(6) == 0 {
			q.Deprecations = append(q.Deprecations, deprecated(b.Name)...)
		}
	}
	return q
}

// TestC2PublicCatalog resolves every package of a public catalog, alone and in pairs of catalogs that hold parts of it,
// and compares with the rules as spec has them. The answers of OLM v1 for these queries are not recorded.
func TestC2PublicCatalog(t *testing.T) {
	packages := community(t)
	var took []time.Duration
	resolved, refused := 0, 0
	for i, p := range packages {
		random := rand.New(rand.NewPCG(uint64(i), 2)) //nolint:gosec // repeatable
		for range 40 {
			q := resolver.Query{Package: p.Name, Range: pick(random, "", "*", "<1", ">=1.0.0", "^0.1 || ^1", ">=0.0.1-0"), RefuseMirrors: true}
			if random.IntN(2) == 0 && len(p.Channels) > 0 {
				q.Channels = []string{pick(random, p.Channels...).Name}
			}
			if random.IntN(3) > 0 {
				b := pick(random, p.Bundles...)
				q.Installed = &resolver.Installed{Bundle: b.Name, Version: b.Version}
				q.UpgradePolicy = pick(random, resolver.CatalogProvided, resolver.CatalogProvided, resolver.SelfCertified)
			}
			catalogs := []resolver.Catalog{{Name: "a", Package: p}}
			if random.IntN(2) == 0 {
				catalogs = []resolver.Catalog{{Name: "a", Package: part(p, random), Priority: random.Int32N(2)}, {Name: "b", Package: part(p, random), Priority: random.Int32N(2)}}
			}
			begin := time.Now()
			answer, err := resolver.Resolve(q, catalogs)
			took = append(took, time.Since(begin))
			got := ""
			if err == nil {
				resolved++
				got = answer.Bundle + " from " + answer.Catalog
			} else {
				refused++
			}
			if want := (spec{q}).expected(catalogs); got != want {
				t.Errorf("%s: %+v: got %q %v, want %q", p.Name, q, got, err, want)
			}
		}
	}
	slices.Sort(took)
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	t.Logf("%d packages, %d resolved, %d refused, p50 %s, p99 %s, at most %s", len(packages), resolved, refused, p50, p99, took[len(took)-1])
	if len(packages) != 333 || resolved < 5000 || refused < 1000 {
		t.Error("this is less than the catalog holds")
	}
	if p50 > 6*time.Millisecond {
		t.Errorf("p50 is %s, want at most 6 ms", p50)
	}
}
