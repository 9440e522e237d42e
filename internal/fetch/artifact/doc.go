// SPDX-License-Identifier: Apache-2.0

// Package artifact keeps bundles as immutable, content-addressed archives, serves them, and loads them again.
//
// The source controller owns a [Store]: a folder with one file an artifact,
//
//	<kind>/<namespace>/<name>/<identity>.tar.gz          the canonical tar, compressed
//	<kind>/<namespace>/<name>/<identity>.tar.gz.sha256   its digest and name, as sha256sum writes them
//
// The identity is the SHA-256 of the canonical uncompressed tar: sorted names, no owner, epoch times, files 0644, folders
// 0755, and only the folders that files need. It says what the content is and is part of the revision. The digest of the
// file moves with the compressor; it says what is transported. Writing goes through a temporary file, fsync, close, rename
// and fsync of the folder, the .sha256 file before the archive, so that a kill at any point leaves nothing or a whole
// artifact. A published file is never modified.
//
// No archive is served, and none passes [Store.Verify], before this process has read it once and found the recorded
// digest. That happens on first use, one read however many ask. The result holds while device, inode, size, modification
// and change time of the file stay as they were, and for an hour at most; a file that changed within two seconds before it
// was read is read again the next time, because a clock tick can hide a later change. Symbolic links are never
// followed.
//
// One process uses a folder at a time. A second one that opens it removes temporary files, which makes a Put that is under
// way fail once; nothing published is affected.
//
// The deployment controller owns a [Loader], which fetches what a source's status advertises, into a cache of its own, and
// [Snapshots] of what it applied last.
package artifact
