// SPDX-License-Identifier: Apache-2.0

package fbc

import "github.com/satchel-dev/satchel/internal/catalog/lean"

// Names of package lean, which reads the blobs of a package.
type (
	// Blob is one JSON value or YAML document of a catalog.
	Blob = lean.Blob
	// Limits bound what is read of a catalog.
	Limits = lean.Limits
	// LimitError is a catalog or package that exceeds one of its Limits.
	LimitError = lean.LimitError
	// Builder collects the lean content of one package.
	Builder = lean.Builder
)

// DefaultLimits are several times what public catalogs hold.
func DefaultLimits() Limits { return lean.DefaultLimits() }

// NewBuilder returns a Builder without blobs.
func NewBuilder(name string, limits Limits) *Builder { return lean.NewBuilder(name, limits) }

// Bounds of all files .indexignore together. Each file of the catalog is compared with each pattern.
const (
	mostIgnorePatterns = 1000
	mostIgnoreBytes    = 256 << 10
)
