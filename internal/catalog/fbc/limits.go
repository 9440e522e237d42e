// SPDX-License-Identifier: Apache-2.0

package fbc

// Limits bound what is read of a catalog. Exceeding one of the first four refuses the catalog, the others only the
// package.
type Limits struct {
	Bytes    int64 // of all files
	Blob     int64 // bytes of one JSON value or YAML document
	Packages int
	Bundles  int // of all packages

	Entries int // of one channel
	Skips   int // of one entry of a channel
}

// DefaultLimits are several times what public catalogs hold.
func DefaultLimits() Limits {
	return Limits{
		Bytes: 512 << 20, Blob: 16 << 20, Packages: 20_000, Bundles: 200_000,
		Entries: 10_000, Skips: 1_000,
	}
}

// Bounds of all files .indexignore together. Each file of the catalog is compared with each pattern.
const (
	mostIgnorePatterns = 1000
	mostIgnoreBytes    = 256 << 10
)
