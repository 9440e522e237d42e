// SPDX-License-Identifier: Apache-2.0

// Package loader loads artifacts: a [Loader] fetches what a source's status advertises from the servers that a flag names,
// checks digest and identity, caches the archive and unpacks it. A status cannot make it contact another server, or load
// the artifact of another owner.
package loader
