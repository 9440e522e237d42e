// SPDX-License-Identifier: Apache-2.0

package closure

import (
	"strings"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// Source is where packages are looked up. Equal questions have equal answers.
type Source interface {
	// Package is what each catalog says about a package, with what its bundles require and provide.
	Package(name string) ([]resolver.Catalog, error)
	// Providers are the packages with a bundle that provides a kind, in all catalogs.
	Providers(kind catalog.Kind) ([]Provider, error)
	// Serves tells whether the cluster serves a kind; without a cluster it does not.
	Serves(kind catalog.Kind) (bool, error)
}

// Provider is a package with a bundle that provides a kind.
type Provider struct {
	Package  string
	Catalog  string
	Priority int32
}

// Installed is a package that a BundleDeployment of the namespace has installed.
type Installed struct {
	Deployment string
	Package    string
	Version    string // empty if it is not known
}

// Limits of the search.
const (
	mostPackages = 50
	mostSteps    = 1000
)

// Bundle is one bundle to install.
type Bundle struct {
	resolver.Answer

	Package string
	// DependsOn are packages of the closure, and Deployments are BundleDeployments of the namespace, that it needs.
	DependsOn   []string
	Deployments []string
	// RequiredBy are the bundles that need it, and what they require; empty for the bundle of the query.
	RequiredBy []string
}

// Closure is what to install.
type Closure struct {
	// Bundles are in the order of their installation. The last one is that of the query.
	Bundles []Bundle
	// Notes say what the cluster provides, and what is not checked.
	Notes []string
}

// RefusalError is why there is no closure.
type RefusalError struct {
	Text   string
	Remedy string
	// Path are the bundles from that of the query to the one that could not be satisfied.
	Path []string
}

// Error is the text.
func (r *RefusalError) Error() string { return r.Text }

// Details are the lines that say more than the text.
func (r *RefusalError) Details() []string {
	var lines []string
	if len(r.Path) > 1 {
		lines = append(lines, "required by: "+strings.Join(r.Path, " -> "))
	}
	if r.Remedy != "" {
		lines = append(lines, "remedy: "+r.Remedy)
	}
	return lines
}
