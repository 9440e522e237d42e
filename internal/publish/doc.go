// SPDX-License-Identifier: Apache-2.0

// Package publish makes images and OCI artifacts of the folders of bundles, pushes them to registries and signs them.
//
// The result depends only on the names and bytes of the files and on the options: the same folder has the same digest on
// every machine. Its one layer is the canonical tar that the source controller makes of a
// tree, so that the digest of the uncompressed layer is the one in the revision of the artifact that a cluster will have.
// Content that the source controller would refuse is refused here, with the same messages.
package publish
