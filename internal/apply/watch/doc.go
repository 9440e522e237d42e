// SPDX-License-Identifier: Apache-2.0

// Package watch tells deployments when something of theirs was changed, deleted or
// got another status: from watches of metadata, as the tenant, of the objects that
// carry the labels of his namespace. One watch serves all deployments of an account,
// for a kind and a namespace. Of an object it keeps a few hashes, of objects of others
// nothing. Whether the watches may be had is for the tenant's rights to say, and how
// many at most for a limit: what is not watched, the caller looks at by itself.
package watch
