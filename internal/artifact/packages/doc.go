// SPDX-License-Identifier: Apache-2.0

// Package packages reads what catalogs say about single packages: a [Reader] asks the artifact servers that a flag names, and
// keeps each answer on disk, so that packages are resolved while the servers are away. A package is transferred again only when
// its digest changed.
package packages
