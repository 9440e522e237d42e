// SPDX-License-Identifier: Apache-2.0

// Package requirement tells whether a cluster meets what a bundle requires: kinds, versions and other packages. What it
// does not meet is a violation of the plan. The package is pure; the facts are read by package observe.
package requirement
