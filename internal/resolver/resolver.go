// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	mmsemver "github.com/Masterminds/semver/v3"

	"github.com/satchel-dev/satchel/internal/catalog"
)

// Resolve chooses a bundle. The only errors are of type *RefusalError. The order of the catalogs does not count; their names
// have to be different.
func Resolve(q Query, catalogs []Catalog) (Answer, error) {
	r := &resolution{
		query: q, catalogs: slices.Clone(catalogs), channels: map[string]bool{},
		edges: map[scoped]map[string]bool{}, skipRanges: map[string]bool{},
	}
	slices.SortStableFunc(r.catalogs, func(a, b Catalog) int { return cmp.Compare(a.Name, b.Name) })
	for _, name := range q.Channels {
		r.channels[name] = true
	}
	var err error
	if r.constraint, err = parseRange(q.Range); err != nil {
		return Answer{}, r.refuse(InvalidRange, fmt.Sprintf("desired version range %q is invalid: %v", q.Range, err))
	}
	var candidates []candidate
	for _, c := range r.catalogs {
		found, refusal := r.inCatalog(c)
		if refusal != nil {
			return Answer{}, refusal
		}
		if found != nil {
			candidates = append(candidates, *found)
		}
	}
	winner, mirrors, refusal := r.choose(candidates)
	if refusal != nil {
		return Answer{}, refusal
	}
	return r.answer(winner, mirrors)
}

// resolution is the work on one query.
type resolution struct {
	query      Query
	catalogs   []Catalog
	channels   map[string]bool // of the query
	constraint *mmsemver.Constraints
	installed  *version // read when the first catalog with the package needs it
	funnel     []Funnel

	edges      map[scoped]map[string]bool // what successors returned
	skipRanges map[string]bool            // whether they contain the installed version
}

// candidate is the bundle that a catalog offers.
type candidate struct {
	bundle
	from Catalog
}

// bundle is a bundle with what the rules compare.
type bundle struct {
	catalog.Bundle
	version    version
	err        error // there is no version
	deprecated bool
}

// inCatalog returns the candidate of one catalog, nil if it has none (R1, R4 to R7).
func (r *resolution) inCatalog(c Catalog) (*candidate, *RefusalError) {
	if c.Problem != nil {
		return nil, r.refuse(CatalogNotReady,
			fmt.Sprintf("error walking catalogs: error getting package %q from catalog %q: %v", r.query.Package, c.Name, c.Problem))
	}
	funnel := Funnel{Catalog: c.Name, Priority: c.Priority}
	if c.Package == nil {
		r.funnel = append(r.funnel, funnel)
		return nil, nil
	}
	if refusal := r.readInstalled(); refusal != nil {
		return nil, refusal
	}
	left := bundles(c.Package)
	funnel.Found, funnel.Bundles = true, len(left)
	for _, f := range r.filters(c.Package) {
		before := len(left)
		left = slices.DeleteFunc(left, func(b bundle) bool { return !f.keeps(b) })
		funnel.Steps = append(funnel.Steps, Step{Filter: f.name, Removed: before - len(left), Left: len(left)})
	}
	if len(left) == 0 {
		r.funnel = append(r.funnel, funnel)
		return nil, nil
	}
	first := slices.MinFunc(left, better) // of equal ones the first in the order of the catalog
	funnel.Candidate, funnel.Deprecated = first.Name, first.deprecated
	r.funnel = append(r.funnel, funnel)
	return &candidate{bundle: first, from: c}, nil
}

// readInstalled reads the installed version where a filter compares with it.
func (r *resolution) readInstalled() *RefusalError {
	if r.query.Installed == nil || r.installed != nil || !r.followsEdges() && r.mayDowngrade() {
		return nil
	}
	v, err := parseVersion(r.query.Installed.Version)
	switch {
	case err == nil:
		r.installed = &v
		return nil
	case r.followsEdges():
		return r.refuse(InstalledUnreadable,
			fmt.Sprintf("error walking catalogs: error finding upgrade edges: failed to get version and release of installed bundle: %v", err))
	}
	return r.refuse(InstalledUnreadable, fmt.Sprintf("error comparing with the installed version %q: %v", r.query.Installed.Version, err))
}

func (r *resolution) followsEdges() bool { return r.query.UpgradePolicy != SelfCertified }

func (r *resolution) mayDowngrade() bool { return r.query.Downgrade == DowngradeAllow }

// bundles are those of a package, with their versions.
func bundles(p *catalog.Package) []bundle {
	deprecated := map[string]bool{}
	for _, d := range p.Deprecations {
		if d.Schema == catalog.SchemaBundle {
			deprecated[d.Name] = true
		}
	}
	all := make([]bundle, 0, len(p.Bundles))
	for _, b := range p.Bundles {
		v, err := bundleVersion(b)
		all = append(all, bundle{Bundle: b, version: v, err: err, deprecated: deprecated[b.Name]})
	}
	return all
}

// better orders bundles, the best first (R6): deprecated ones last, those without a version last, then descending.
func better(a, b bundle) int {
	switch {
	case a.deprecated != b.deprecated:
		return lower(a.deprecated)
	case (a.err != nil) != (b.err != nil):
		return lower(a.err != nil)
	case a.err != nil:
		return 0
	}
	return b.version.compare(a.version)
}

// lower is the order of the first of two of which one is worse.
func lower(firstIsWorse bool) int {
	if firstIsWorse {
		return 1
	}
	return -1
}

// choose returns the winner among the candidates of the catalogs, and its mirrors (R8, R12).
func (r *resolution) choose(candidates []candidate) (candidate, []string, *RefusalError) {
	if slices.ContainsFunc(candidates, func(c candidate) bool { return !c.deprecated }) {
		candidates = slices.DeleteFunc(candidates, func(c candidate) bool { return c.deprecated })
	}
	if len(candidates) == 0 {
		return candidate{}, nil, r.refuse(NoBundles, r.text(nil))
	}
	highest := slices.MaxFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.from.Priority, b.from.Priority) })
	var top []candidate
	var names []string
	for _, c := range candidates {
		names = append(names, c.from.Name)
		if c.from.Priority == highest.from.Priority {
			top = append(top, c)
		}
	}
	if len(top) > 1 && (r.query.RefuseMirrors || !sameImage(top)) {
		// OLM v1 lists the candidates of lower priority as well.
		return candidate{}, nil, r.refuse(Ambiguous, r.text(names))
	}
	var mirrors []string
	for _, c := range top[1:] {
		mirrors = append(mirrors, c.from.Name)
	}
	return top[0], mirrors, nil
}

// sameImage tells that all candidates are the same version with the same image digest. Only digests tell that: a tag
// may be another image in another catalog.
func sameImage(candidates []candidate) bool {
	first := candidates[0]
	digest := imageDigest(first.Image)
	for _, c := range candidates[1:] {
		if c.err != nil || first.err != nil || c.version.compare(first.version) != 0 || imageDigest(c.Image) != digest {
			return false
		}
	}
	return digest != ""
}

// imageDigest is the digest of a reference; empty if it has none.
func imageDigest(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

// answer describes the winner, which is refused without a version.
func (r *resolution) answer(winner candidate, mirrors []string) (Answer, error) {
	if winner.err != nil {
		return Answer{}, r.refuse(VersionUnreadable,
			fmt.Sprintf("error getting resolved bundle version for bundle %q: %v", winner.Name, winner.err))
	}
	return Answer{
		Bundle: winner.Name, Version: winner.version.semver.String(), Release: winner.version.releaseText(), Image: winner.Image,
		Catalog: winner.from.Name, Mirrors: mirrors, Channels: channelsOf(winner.from.Package, winner.Name, r.wanted),
		Deprecations: r.deprecations(winner), Newest: r.newest(winner), Funnel: r.funnel,
	}, nil
}

// wanted tells whether a channel is one of the query.
func (r *resolution) wanted(channel string) bool { return len(r.channels) == 0 || r.channels[channel] }

// channelsOf are the channels with an entry of the bundle, each once, in the order of the catalog.
func channelsOf(p *catalog.Package, name string, wanted func(string) bool) []string {
	var found []string
	for _, channel := range p.Channels {
		if !wanted(channel.Name) || slices.Contains(found, channel.Name) {
			continue
		}
		if slices.ContainsFunc(channel.Entries, func(e catalog.Entry) bool { return e.Name == name }) {
			found = append(found, channel.Name)
		}
	}
	return found
}

// deprecations are those of the winner's catalog that concern the query (R11).
func (r *resolution) deprecations(winner candidate) []catalog.Deprecation {
	var found []catalog.Deprecation
	for _, d := range winner.from.Package.Deprecations {
		switch {
		case d.Schema == catalog.SchemaPackage,
			d.Schema == catalog.SchemaChannel && r.channels[d.Name],
			d.Schema == catalog.SchemaBundle && d.Name == winner.Name:
			found = append(found, d)
		}
	}
	return found
}
