// SPDX-License-Identifier: Apache-2.0

// Package publish makes images and OCI artifacts of the folders of bundles, brings them to registries and signs them.
//
// What is made depends on the names and bytes of the files and on what the caller states, and on nothing else: the same
// folder has the same digest on every machine. Its one layer is the canonical tar that the source controller makes of a
// tree, so that the digest of the uncompressed layer is the one in the revision of the artifact that a cluster will have.
// What the source controller would refuse is refused here, in the same words.
package publish
