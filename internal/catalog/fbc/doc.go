// SPDX-License-Identifier: Apache-2.0

// Package fbc reads file-based catalogs (FBC), the format of the Operator Lifecycle Manager: files with JSON values or
// YAML documents, called blobs, each with a schema and mostly with a package. It holds one blob at a time and what was
// asked for, so memory depends neither on the size of the catalog nor on other packages.
//
// The format is read as operator-registry's declcfg reads it: every file of a folder, in order of path, except those
// that a file .indexignore names. There, one unreadable blob refuses everything. Here, it refuses its package; only
// what leaves the rest of a file without meaning, such as a syntax error, refuses the catalog.
//
// YAML is not linear in its size: a process that serves several tenants reads YAML of others in a worker only.
package fbc
