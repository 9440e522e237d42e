// SPDX-License-Identifier: Apache-2.0

// Package kit is what all commands share: the streams and flags of the program, access to the cluster, choosing
// objects, completion, waiting, and errors that say what to do.
package kit
