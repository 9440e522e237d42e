// SPDX-License-Identifier: Apache-2.0

// Package index prepares a file-based catalog for serving and for resolution. [Build] reads its files once, one blob at a
// time, and writes two streams: all blobs, one a line, in the bytes that catalogd of OLM v1 serves, and the lean blobs, which
// are what resolution depends on. [Index] says where the blobs of a package are in both. [Index.Summarize] writes a line
// about each package for people who look for one. [Reader] reads packages by the index.
//
// The package knows neither Kubernetes nor where files are stored. It decodes JSON and YAML of tenants: a controller calls
// Build and Summarize in a worker process only, and decodes an Index with [Decode], which bounds it.
package index
