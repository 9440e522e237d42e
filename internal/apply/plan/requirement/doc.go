// SPDX-License-Identifier: Apache-2.0

// Package requirement tells whether a cluster meets what a bundle requires: kinds, versions and other packages. It is
// pure; the facts are read by package observe.
package requirement
