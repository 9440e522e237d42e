// SPDX-License-Identifier: Apache-2.0

// Package discovery caches what a cluster serves: its kinds, versions and groups. It repeats discovery when a kind is
// missing, and tells kinds that are gone from those that are not served at the moment. It reads no objects.
package discovery
