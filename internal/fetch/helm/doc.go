// SPDX-License-Identifier: Apache-2.0

// Package helm fetches a chart of a Helm repository: it reads the repository's index, chooses the newest version in a range,
// and downloads the archive of that version, with the digest that the index names.
package helm
