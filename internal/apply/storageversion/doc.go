// SPDX-License-Identifier: Apache-2.0

// Package storageversion removes the conversion webhook from CRDs that outlive it. Before that it rewrites their resources
// in the storage version, a bounded number in each call, and remembers how far it has come.
package storageversion
