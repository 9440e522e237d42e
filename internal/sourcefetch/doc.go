// SPDX-License-Identifier: Apache-2.0

// Package sourcefetch builds the adapter of fetch for each source of a spec, with the logins, certificates
// and trust in the Secrets of that source.
package sourcefetch
