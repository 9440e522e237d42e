// SPDX-License-Identifier: Apache-2.0

// Package catalog has the words for what a catalog says about a package: as much as resolution needs, and nothing of
// the descriptions, icons and manifests that make catalogs large.
package catalog

// Schemas of the blobs of a file-based catalog (FBC) that resolution depends on.
const (
	SchemaPackage      = "olm.package"
	SchemaChannel      = "olm.channel"
	SchemaBundle       = "olm.bundle"
	SchemaDeprecations = "olm.deprecations"
)

// ConfigsLabel is the label of an image with the folder of its catalog, without which that is the root.
const ConfigsLabel = "operators.operatorframework.io.index.configs.v1"

// Package is the lean content of one package of one catalog. The order of all lists is that of the catalog.
type Package struct {
	Name string
	// DefaultChannel is that of the first blob olm.package. Resolution does not depend on it.
	DefaultChannel string
	Channels       []Channel
	Bundles        []Bundle
	// Deprecations are the entries of the first blob olm.deprecations; further blobs count for nothing, as in OLM v1.
	Deprecations []Deprecation
}

// Channel is a channel with its upgrade edges. If a name occurs twice, the entries of both count.
type Channel struct {
	Name    string
	Entries []Entry
}

// Entry is a bundle of a channel, and the edges that lead to it. The bundle need not be in the catalog.
type Entry struct {
	Name      string
	Replaces  string
	Skips     []string
	SkipRange string
}

// Bundle is one version of a package.
type Bundle struct {
	Name  string
	Image string
	// Version is the version of the first property olm.package, as it is written there; it need not be one.
	Version string
	// VersionProblem says why there is no Version. It is empty if there is one.
	VersionProblem string
}

// Deprecation is an entry of olm.deprecations: the package, a channel or a bundle is deprecated.
type Deprecation struct {
	Schema  string // of what is deprecated
	Name    string // empty for a package
	Message string
}
