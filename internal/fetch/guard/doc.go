// SPDX-License-Identifier: Apache-2.0

// Package guard decides what a controller may connect to for a tenant, and makes the clients that follow it: which
// addresses names may resolve to, where plain HTTP is allowed, where redirects may lead, and how slow a server may be. It
// knows the servers of the cluster only by what it is given, and no kind of source.
package guard
