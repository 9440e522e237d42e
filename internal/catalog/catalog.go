// SPDX-License-Identifier: Apache-2.0

// Package catalog has the words for what a catalog says about a package: as much as resolution needs, and nothing of
// the descriptions, icons and manifests that make catalogs large.
package catalog

import (
	"fmt"
	"strings"
)

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
	// Requires are its dependencies, and Provides its kinds. Only a reader that is told to reads them: resolution does not
	// depend on them.
	Requires []Requirement
	Provides []Kind
}

// Kind is a kind of API.
type Kind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// String is the kind as messages name it.
func (k Kind) String() string {
	if k.Group == "" {
		return fmt.Sprintf("kind %s of %s", k.Kind, k.Version)
	}
	return fmt.Sprintf("kind %s of %s/%s", k.Kind, k.Group, k.Version)
}

// RequirementType says which fields of a Requirement are set.
type RequirementType string

// Types of requirements.
const (
	// RequirePackage: the package Package, in a version of the range Range; empty for any.
	RequirePackage RequirementType = "Package"
	// RequireKind: the kind Kind, from any package or from the cluster.
	RequireKind RequirementType = "Kind"
	// RequireAll, RequireAny, RequireNone: a compound of Of.
	RequireAll  RequirementType = "All"
	RequireAny  RequirementType = "Any"
	RequireNone RequirementType = "None"
	// RequireUnchecked: a constraint that cannot be checked, such as one in CEL. Problem says which.
	RequireUnchecked RequirementType = "Unchecked"
	// RequireUnreadable: a property that cannot be read, as Problem says.
	RequireUnreadable RequirementType = "Unreadable"
)

// Requirement is something that a bundle needs: a property olm.package.required, olm.gvk.required or olm.constraint.
type Requirement struct {
	Type    RequirementType
	Package string
	Range   string // in the syntax of blang/semver
	Kind    Kind
	Of      []Requirement
	Problem string
}

// String is the requirement as messages name it.
func (r Requirement) String() string {
	switch r.Type {
	case RequirePackage:
		if r.Range == "" {
			return "package " + r.Package
		}
		return fmt.Sprintf("package %s in version %s", r.Package, r.Range)
	case RequireKind:
		return r.Kind.String()
	case RequireAll, RequireAny, RequireNone:
		parts := make([]string, 0, len(r.Of))
		for _, part := range r.Of {
			parts = append(parts, part.String())
		}
		return strings.ToLower(string(r.Type)) + " of (" + strings.Join(parts, "; ") + ")"
	}
	return r.Problem
}

// Deprecation is an entry of olm.deprecations: the package, a channel or a bundle is deprecated.
type Deprecation struct {
	Schema  string // of what is deprecated
	Name    string // empty for a package
	Message string
}
