// SPDX-License-Identifier: Apache-2.0

// Package catalogs keeps indexed catalogs and serves them. Contents are a folder with the files of package index, named by the
// digest of the digests of all files, so that catalogs with equal contents share it, in whatever namespaces they are. A record
// says which contents a catalog serves; it is written when they are stored, and nothing is served without one.
//
// A folder is written under a temporary name, synced and renamed, and the record after it. A kill at any point leaves the
// former contents served, and files that the next start removes. Contents are read once and compared with their digests before
// their first use, and again when a file changed.
package catalogs
