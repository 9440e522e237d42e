// SPDX-License-Identifier: Apache-2.0

// Package artifact names bundles that are kept as immutable, content-addressed archives, and writes their canonical form:
// owners, identities, digests, revisions and paths, which the controllers and the command line agree about.
//
//	<kind>/<namespace>/<name>/<identity>.tar.gz          the canonical tar, compressed
//	<kind>/<namespace>/<name>/<identity>.tar.gz.sha256   its digest and name, as sha256sum writes them
//
// The identity is the SHA-256 of the canonical uncompressed tar: sorted names, no owner, epoch times, files 0644, folders
// 0755, and only the folders that files need. It says what the content is and is part of the revision. The digest of the
// file moves with the compressor; it says what is transported.
//
// The packages below it work on such archives:
//
//   - storage keeps them on the volume of the source controller, and server serves them.
//   - loader fetches what a source's status advertises for the deployment controller, and cache keeps that.
//   - lastapplied keeps the objects that a deployment applied last.
//   - upload brings a folder to the source controller.
//   - volume writes files durably; storage, cache and lastapplied use it.
//
// None of them knows where a bundle came from: that is the matter of package fetch.
package artifact
