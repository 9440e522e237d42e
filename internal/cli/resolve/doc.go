// SPDX-License-Identifier: Apache-2.0

// Package resolve has the command resolve: the bundle that a query chooses from catalogs.
package resolve
