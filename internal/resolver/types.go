// SPDX-License-Identifier: Apache-2.0

package resolver

import "github.com/satchel-dev/satchel/internal/catalog"

// UpgradePolicy says whether upgrades follow the edges of the catalog.
type UpgradePolicy string

// Upgrade policies, with the names and the meaning of OLM v1.
const (
	CatalogProvided UpgradePolicy = "CatalogProvided" // the default
	SelfCertified   UpgradePolicy = "SelfCertified"
)

// Downgrade says whether SelfCertified may go to a lower version. A lower version to which an edge of the catalog
// leads is always possible.
type Downgrade string

// Kinds of Downgrade.
const (
	DowngradeRefuse Downgrade = "Refuse" // the default
	DowngradeAllow  Downgrade = "Allow"
)

// Query is what is wanted.
type Query struct {
	Package string
	// Range of versions; empty for all, prereleases included.
	Range string
	// Channels that candidates and edges are taken from; empty for all bundles.
	Channels      []string
	UpgradePolicy UpgradePolicy
	Downgrade     Downgrade
	// Installed is the bundle that upgrades start from; nil for a first installation.
	Installed *Installed
	// RefuseMirrors refuses the same image digest in several catalogs of the same priority, as OLM v1 does: R12 off.
	RefuseMirrors bool
}

// Installed is what is installed.
type Installed struct {
	Bundle  string
	Version string // with its release; it need not be in a catalog
}

// Catalog is what one catalog says about the package of a query.
type Catalog struct {
	Name     string
	Priority int32
	// Package is nil if the catalog does not have it.
	Package *catalog.Package
	// Problem is why nothing can be said about the package. It fails the resolution.
	Problem error
}

// Answer is the bundle to go to.
type Answer struct {
	Bundle  string
	Version string // without the release
	Release string
	Image   string
	Catalog string
	// Mirrors are further catalogs with the same version and image digest (R12).
	Mirrors []string
	// Channels are those of the query, or of all, that have the bundle.
	Channels []string
	// Deprecations are about the package, the channels of the query, and the bundle (R11).
	Deprecations []catalog.Deprecation
	// Newest is the newest bundle of the winner's catalog, if another one was chosen.
	Newest *Miss
	Funnel []Funnel
}

// Filter is a reason why a bundle is no candidate.
type Filter string

// Filters, in the order in which they are applied.
const (
	FilterChannels Filter = "Channels"
	FilterRange    Filter = "Range"
	// FilterPrerelease is FilterRange, for a prerelease that the range would contain if it contained any.
	FilterPrerelease Filter = "Prerelease"
	FilterSuccessor  Filter = "Successor"
	FilterDowngrade  Filter = "Downgrade"
)

// Funnel says how many bundles of a catalog were left after each filter.
type Funnel struct {
	Catalog  string
	Priority int32
	Found    bool // the catalog has the package
	Bundles  int
	Steps    []Step
	// Candidate is the bundle that the catalog offers; empty for none.
	Candidate string
	// Deprecated says that the candidate is deprecated.
	Deprecated bool
}

// Step is one filter that was applied.
type Step struct {
	Filter  Filter
	Removed int
	Left    int
}

// Miss is a bundle that was not chosen, and why.
type Miss struct {
	Bundle  string
	Version string // with its release
	Catalog string
	// Failed are the filters that it does not pass, each applied alone. It is empty if the bundle is deprecated, or
	// comes after the chosen one.
	Failed     []Filter
	Deprecated bool
	// Channels are all that have the bundle.
	Channels []string
	// Edges are channels outside of the query with an edge to the bundle.
	Edges []string
}
