// SPDX-License-Identifier: Apache-2.0

// Package scaffold makes the files of a bundle from the files of an author: manifests, a folder of a known format, an
// Operator SDK project, or nothing yet. It reads its input and writes nothing.
package scaffold
