// SPDX-License-Identifier: Apache-2.0

// Package storage keeps the artifacts of the source controller: a [Store] is a folder with one file an artifact.
//
// Writing goes through a temporary file, fsync, close, rename and fsync of the folder, the .sha256 file before the archive,
// so that a kill at any point leaves nothing or a whole artifact. A published file is never modified.
//
// No archive is opened for a reader, and none passes [Store.Verify], before this process has read it once and found the
// recorded digest. That happens on first use, one read however many ask. The result holds while device, inode, size,
// modification and change time of the file stay as they were, and for an hour at most; a file that changed within two seconds
// before it was read is read again the next time, because a clock tick can hide a later change. Symbolic links are never
// followed.
//
// One process uses a folder at a time. A second one that opens it removes temporary files, which makes a Put that is under
// way fail once; nothing published is affected.
package storage
