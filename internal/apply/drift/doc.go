// SPDX-License-Identifier: Apache-2.0

// Package drift tells deployments when one of their objects was changed, deleted or
// got another status: by watches of metadata, as the tenant, of the objects with
// the labels of its namespace. One watch serves all deployments of an account,
// for a kind and a namespace. For an object it keeps a few hashes, for foreign objects
// nothing. Watches need the tenant's permissions, and their number is
// limited: the caller has to read unwatched objects itself.
package drift
