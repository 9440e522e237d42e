// SPDX-License-Identifier: Apache-2.0

// Package digest computes the digests that identify a plan for an approval, and the content of a bundle. Values of Secrets
// enter them as keyed hashes only. It is pure.
package digest
