// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	mmsemver "github.com/Masterminds/semver/v3"
	bsemver "github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// world is a query and the catalogs for it.
type world struct {
	query    resolver.Query
	catalogs []resolver.Catalog
}

// each calls a function with generated worlds, the same ones in each run.
func each(t *testing.T, check func(t *testing.T, w world, random *rand.Rand)) {
	t.Helper()
	worlds := 3000
	if os.Getenv("SATCHEL_FULL") != "" {
		worlds = 100_000
	}
	for seed := range worlds {
		random := rand.New(rand.NewPCG(uint64(seed), 19)) //nolint:gosec // repeatable
		w := generated(random)
		check(t, w, random)
		if t.Failed() {
			t.Fatalf("seed %d: %+v of %+v", seed, w.query, w.catalogs)
		}
	}
}

func pick[T any](random *rand.Rand, all ...T) T { return all[random.IntN(len(all))] }

func generatedVersion(random *rand.Rand) string {
	v := fmt.Sprintf("%d.%d.%d", random.IntN(3), random.IntN(3), random.IntN(3))
	return v + pick(random, "", "", "", "", "-rc.1") + pick(random, "", "", "", "+1", "+2", "+01", "+abcdefghij.abcdefghij")
}

func generatedPackage(random *rand.Rand) *catalog.Package {
	p := &catalog.Package{Name: "p"}
	var names []string
	for i := range random.IntN(9) {
		b := catalog.Bundle{Version: generatedVersion(random), Image: fmt.Sprintf("r%d%s", i, pick(random, "@sha256:1", "@sha256:2", ":1"))}
		b.Name = "p.v" + b.Version
		if random.IntN(12) == 0 {
			b.Version = pick(random, "", "1.0", "x")
		}
		names = append(names, b.Name)
		p.Bundles = append(p.Bundles, b)
		if random.IntN(4) == 0 {
			p.Deprecations = append(p.Deprecations, catalog.Deprecation{Schema: pick(random, catalog.SchemaBundle, catalog.SchemaBundle, catalog.SchemaPackage), Name: b.Name})
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		if len(names) == 0 || random.IntN(3) == 0 {
			continue
		}
		c := catalog.Channel{Name: name}
		for range random.IntN(len(names) + 1) {
			e := catalog.Entry{Name: pick(random, names...)}
			if random.IntN(2) == 0 {
				e.Replaces = pick(random, names...)
			}
			if random.IntN(4) == 0 {
				e.Skips = []string{pick(random, names...), pick(random, names...)}
			}
			if random.IntN(4) == 0 {
				e.SkipRange = pick(random, ">=1.0.0 <2.0.0", "<1.0.0", "not a range", "*", "=1.1.1", ">=1.0.0-0 <1.1.0")
			}
			c.Entries = append(c.Entries, e)
		}
		p.Channels = append(p.Channels, c)
	}
	return p
}

func generated(random *rand.Rand) world {
	w := world{query: resolver.Query{
		Package: "p", Range: pick(random, "", "", "*", ">=1.0.0", "<2.0.0", "~1.1", "^1", "1.x", ">=1.0.0-0", "!=1.0.0", "<1 || >=2"),
		Channels:      pick(random, nil, nil, nil, []string{"a"}, []string{"b"}, []string{"a", "c"}, []string{"zz"}),
		UpgradePolicy: pick(random, "", resolver.CatalogProvided, resolver.CatalogProvided, resolver.SelfCertified),
		Downgrade:     pick(random, "", resolver.DowngradeRefuse, resolver.DowngradeAllow),
		RefuseMirrors: random.IntN(3) == 0,
	}}
	if random.IntN(2) == 0 {
		w.query.Installed = installed(generatedVersion(random))
	}
	for i := range 1 + random.IntN(3) {
		c := resolver.Catalog{Name: fmt.Sprintf("c%d", i), Priority: int32(random.IntN(3))} //nolint:gosec // it is small
		if random.IntN(8) != 0 {
			c.Package = generatedPackage(random)
		}
		w.catalogs = append(w.catalogs, c)
	}
	return w
}

// spec says again what the rules are, one bundle at a time and without any of the resolver's code.
type spec struct{ query resolver.Query }

// parsed is a version with its release as OLM v1 splits them.
func (spec) parsed(b catalog.Bundle) (v bsemver.Version, release []bsemver.PRVersion, ok bool) {
	v, err := bsemver.Parse(b.Version)
	if err != nil || b.VersionProblem != "" {
		return v, nil, false
	}
	length := len(v.Build) - 1
	for _, part := range v.Build {
		length += len(part)
		identifier, err := bsemver.NewPRVersion(part)
		if err != nil {
			return v, nil, true
		}
		release = append(release, identifier)
	}
	if length > 20 {
		release = nil
	}
	return v, release, true
}

// order compares two bundles with versions.
func (s spec) order(a, b catalog.Bundle) int {
	va, ra, _ := s.parsed(a)
	vb, rb, _ := s.parsed(b)
	if va.NE(vb) {
		return va.Compare(vb)
	}
	if (len(ra) == 0) != (len(rb) == 0) {
		return len(ra) - len(rb)
	}
	return bsemver.Version{Pre: ra}.Compare(bsemver.Version{Pre: rb})
}

func (s spec) passes(p *catalog.Package, b catalog.Bundle) bool {
	return s.inChannels(p, b) && s.inRange(b) && s.mayFollow(p, b)
}

func (s spec) inChannels(p *catalog.Package, b catalog.Bundle) bool {
	if len(s.query.Channels) == 0 {
		return true
	}
	for _, c := range p.Channels {
		for _, e := range c.Entries {
			if e.Name == b.Name && slices.Contains(s.query.Channels, c.Name) {
				return true
			}
		}
	}
	return false
}

func (s spec) inRange(b catalog.Bundle) bool {
	if s.query.Range == "" {
		return true
	}
	v, release, ok := s.parsed(b)
	if !ok {
		return false
	}
	if len(release) > 0 {
		v.Build = nil
	}
	constraint, err := mmsemver.NewConstraint(s.query.Range)
	return err == nil && constraint.Check(mmsemver.MustParse(v.String()))
}

func (s spec) mayFollow(p *catalog.Package, b catalog.Bundle) bool {
	if s.query.Installed == nil || s.query.UpgradePolicy == resolver.SelfCertified && s.query.Downgrade == resolver.DowngradeAllow {
		return true
	}
	have := catalog.Bundle{Name: s.query.Installed.Bundle, Version: s.query.Installed.Version}
	_, _, ok := s.parsed(b)
	if s.query.UpgradePolicy == resolver.SelfCertified {
		return ok && s.order(b, have) >= 0
	}
	if ok && s.order(b, have) == 0 {
		return true
	}
	for _, c := range p.Channels {
		if len(s.query.Channels) > 0 && !slices.Contains(s.query.Channels, c.Name) {
			continue
		}
		for _, e := range c.Entries {
			contains, err := bsemver.ParseRange(e.SkipRange)
			if e.Name == b.Name && (e.Replaces == have.Name || slices.Contains(e.Skips, have.Name) ||
				err == nil && e.SkipRange != "" && contains(bsemver.MustParse(have.Version))) {
				return true
			}
		}
	}
	return false
}

func (spec) deprecated(p *catalog.Package, b catalog.Bundle) bool {
	return slices.ContainsFunc(p.Deprecations, func(d catalog.Deprecation) bool {
		return d.Schema == catalog.SchemaBundle && d.Name == b.Name
	})
}

// resolved returns the answer, which may be none.
func (w world) resolved() (resolver.Answer, *resolver.RefusalError) {
	answer, err := resolver.Resolve(w.query, w.catalogs)
	refusal := new(resolver.RefusalError)
	if errors.As(err, &refusal) {
		return answer, refusal
	}
	return answer, nil
}

// TestC13AnswerPassesAllFilters wants the answer to pass every filter alone, and no passing bundle that is better in
// its catalog; a refusal for want of bundles wants none that passes.
func TestC13AnswerPassesAllFilters(t *testing.T) {
	answers, none := 0, 0
	each(t, func(t *testing.T, w world, _ *rand.Rand) {
		answer, refusal := w.resolved()
		s := spec{w.query}
		for _, c := range w.catalogs {
			if c.Package == nil {
				continue
			}
			at := slices.IndexFunc(c.Package.Bundles, func(b catalog.Bundle) bool {
				return c.Name == answer.Catalog && b.Name == answer.Bundle && b.Image == answer.Image && s.passes(c.Package, b)
			})
			if refusal == nil && c.Name == answer.Catalog && at < 0 {
				t.Errorf("%s fails a filter", answer.Bundle)
				return
			}
			for i, b := range c.Package.Bundles {
				if !s.passes(c.Package, b) {
					continue
				}
				if refusal != nil && refusal.Reason == resolver.NoBundles {
					t.Errorf("%s passes all filters", b.Name)
				}
				if at < 0 {
					continue
				}
				mine := c.Package.Bundles[at]
				old, mineOld := s.deprecated(c.Package, b), s.deprecated(c.Package, mine)
				_, _, ok := s.parsed(b)
				if !old && mineOld || old == mineOld && ok && (s.order(b, mine) > 0 || s.order(b, mine) == 0 && i < at) {
					t.Errorf("%s is better than %s", b.Name, mine.Name)
				}
			}
		}
		if refusal == nil {
			answers++
		} else if refusal.Reason == resolver.NoBundles {
			none++
		}
	})
	if answers < 800 || none < 300 {
		t.Errorf("only %d answers and %d refusals are compared", answers, none)
	}
}

// TestC14OrderCountsForNothing shuffles catalogs, channels and entries, and bundles of different version.
func TestC14OrderCountsForNothing(t *testing.T) {
	each(t, func(t *testing.T, w world, random *rand.Rand) {
		want, wantRefusal := w.resolved()
		shuffled := world{query: w.query, catalogs: slices.Clone(w.catalogs)}
		random.Shuffle(len(shuffled.catalogs), func(i, j int) {
			shuffled.catalogs[i], shuffled.catalogs[j] = shuffled.catalogs[j], shuffled.catalogs[i]
		})
		for i := range shuffled.catalogs {
			if p := shuffled.catalogs[i].Package; p != nil {
				shuffled.catalogs[i].Package = reordered(p, random)
			}
		}
		got, refusal := shuffled.resolved()
		if (refusal == nil) != (wantRefusal == nil) || refusal != nil && refusal.Text != wantRefusal.Text && refusal.Reason != resolver.VersionUnreadable {
			t.Errorf("got %v, want %v", refusal, wantRefusal)
		}
		if got.Version != want.Version || got.Release != want.Release || got.Catalog != want.Catalog {
			t.Errorf("got %s of %s, want %s of %s", got.Bundle, got.Catalog, want.Bundle, want.Catalog)
		}
	})
}

// reordered is a package in another order, apart from bundles between which the order of the catalog decides (R6).
func reordered(p *catalog.Package, random *rand.Rand) *catalog.Package {
	q := &catalog.Package{Name: p.Name, Channels: slices.Clone(p.Channels), Bundles: slices.Clone(p.Bundles), Deprecations: slices.Clone(p.Deprecations)}
	random.Shuffle(len(q.Channels), func(i, j int) { q.Channels[i], q.Channels[j] = q.Channels[j], q.Channels[i] })
	for i := range q.Channels {
		q.Channels[i].Entries = slices.Clone(q.Channels[i].Entries)
		slices.Reverse(q.Channels[i].Entries)
	}
	slices.Reverse(q.Deprecations)
	for i := range len(q.Bundles) - 1 {
		a, b := q.Bundles[i], q.Bundles[i+1]
		if _, _, ok := (spec{}).parsed(a); !ok {
			continue
		}
		if _, _, ok := (spec{}).parsed(b); ok && (spec{}).order(a, b) != 0 {
			q.Bundles[i], q.Bundles[i+1] = b, a
		}
	}
	return q
}

// TestC15OtherBundlesCountForNothing adds bundles that a filter removes.
func TestC15OtherBundlesCountForNothing(t *testing.T) {
	added := 0
	each(t, func(t *testing.T, w world, random *rand.Rand) {
		want, wantRefusal := w.resolved()
		more := world{query: w.query, catalogs: slices.Clone(w.catalogs)}
		for i, c := range more.catalogs {
			b := catalog.Bundle{Name: "other", Version: generatedVersion(random)}
			if s := (spec{w.query}); c.Package == nil || s.inChannels(c.Package, b) && s.inRange(b) {
				continue
			}
			p := *c.Package
			p.Bundles = append([]catalog.Bundle{b}, p.Bundles...)
			more.catalogs[i].Package = &p
			added++
		}
		got, refusal := more.resolved()
		if (refusal == nil) != (wantRefusal == nil) || refusal != nil && refusal.Text != wantRefusal.Text {
			t.Errorf("got %v, want %v", refusal, wantRefusal)
		}
		if got.Bundle != want.Bundle || got.Catalog != want.Catalog || got.Image != want.Image {
			t.Errorf("got %s of %s, want %s of %s", got.Bundle, got.Catalog, want.Bundle, want.Catalog)
		}
	})
	if added < 1000 {
		t.Errorf("only %d bundles were added", added)
	}
}

// TestC17InstallingTheAnswer wants the resolution after it to stay or to follow an edge (C16), and a chain of upgrades
// to come back to a bundle after at most as many hops as there are bundles.
func TestC17InstallingTheAnswer(t *testing.T) {
	hops := 0
	each(t, func(t *testing.T, w world, _ *rand.Rand) {
		w.query.UpgradePolicy = resolver.CatalogProvided
		bundles := 0
		for _, c := range w.catalogs {
			if c.Package != nil {
				bundles += len(c.Package.Bundles)
			}
		}
		var been []resolver.Installed
		for {
			answer, refusal := w.resolved()
			if refusal != nil {
				return
			}
			c := w.catalogs[slices.IndexFunc(w.catalogs, func(c resolver.Catalog) bool { return c.Name == answer.Catalog })]
			s := spec{w.query}
			if !slices.ContainsFunc(c.Package.Bundles, func(b catalog.Bundle) bool { return b.Name == answer.Bundle && s.mayFollow(c.Package, b) }) {
				t.Errorf("no edge leads from %v to %s", w.query.Installed, answer.Bundle)
				return
			}
			next := resolver.Installed{Bundle: answer.Bundle, Version: answer.Version}
			if answer.Release != "" {
				next.Version += "+" + answer.Release
			}
			if slices.Contains(been, next) {
				return
			}
			if been = append(been, next); len(been) > bundles {
				t.Errorf("%d hops among %d bundles", len(been), bundles)
				return
			}
			w.query.Installed = &next
			hops++
		}
	})
	if hops < 700 {
		t.Errorf("only %d hops", hops)
	}
}

// TestC18NarrowerRange wants no higher version from a narrower range, in one catalog without deprecations.
func TestC18NarrowerRange(t *testing.T) {
	compared := 0
	each(t, func(t *testing.T, w world, random *rand.Rand) {
		c := w.catalogs[0]
		if c.Package == nil {
			return
		}
		p := *c.Package
		p.Deprecations = nil
		w.catalogs = []resolver.Catalog{{Name: "c", Package: &p}}
		w.query.Range = pick(random, ">=0.0.0-0", ">=0.1.0-0", "<2.1.0-0")
		wide, refusal := w.resolved()
		w.query.Range += ", " + pick(random, ">=1.0.0-0", "<2.0.0-0", "!=1.1.1-0")
		narrow, narrowRefusal := w.resolved()
		if narrowRefusal != nil {
			return
		}
		if refusal != nil {
			t.Errorf("the narrower range has %s, the wider one nothing: %v", narrow.Bundle, refusal)
			return
		}
		compared++
		if bsemver.MustParse(narrow.Version).GT(bsemver.MustParse(wide.Version)) {
			t.Errorf("the narrower range has %s, the wider one %s", narrow.Version, wide.Version)
		}
	})
	if compared < 500 {
		t.Errorf("only %d pairs are compared", compared)
	}
}

// TestRemedies applies what refusals advise where that is one change of the query, and wants a bundle then.
func TestRemedies(t *testing.T) {
	applied := map[resolver.Filter]int{}
	each(t, func(t *testing.T, w world, _ *rand.Rand) {
		_, refusal := w.resolved()
		if refusal == nil || refusal.Nearest == nil || len(refusal.Nearest.Failed) != 1 {
			return
		}
		nearest := refusal.Nearest
		switch nearest.Failed[0] {
		case resolver.FilterDowngrade:
			w.query.Downgrade = resolver.DowngradeAllow
		case resolver.FilterChannels:
			switch {
			case len(nearest.Edges) > 0:
				w.query.Channels = append(slices.Clone(w.query.Channels), nearest.Edges[0])
			case len(nearest.Channels) > 0:
				w.query.Channels = append(slices.Clone(w.query.Channels), nearest.Channels[0])
			default:
				w.query.Channels = nil
			}
		case resolver.FilterSuccessor:
			w.query.UpgradePolicy, w.query.Downgrade = resolver.SelfCertified, resolver.DowngradeAllow
		case resolver.FilterRange, resolver.FilterPrerelease:
			w.query.Range = nearest.Version
		}
		applied[nearest.Failed[0]]++
		if _, again := w.resolved(); again != nil && again.Reason == resolver.NoBundles {
			t.Errorf("%s\ndoes not help: %s", cmp.Diff(refusal.Details(), []string(nil)), again)
		}
	})
	if len(applied) < 5 {
		t.Errorf("not all remedies occur: %v", applied)
	}
}
