// SPDX-License-Identifier: Apache-2.0

// Package volume writes and reads files on a volume so that a kill, a full volume or a replaced file is noticed: durable
// writes by temporary file, fsync and rename, reads that follow no link, and errors that say what to do about the volume.
// It does not know what the files are.
package volume
