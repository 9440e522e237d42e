// SPDX-License-Identifier: Apache-2.0

// Package uploads decides who may upload content for a BundleSource, and stores what was uploaded.
// The protocol is in internal/artifact/upload.
package uploads
