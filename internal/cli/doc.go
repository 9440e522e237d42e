// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of Satchel: one file a command, each a thin layer over one call. What a command
// says is built as a value first and printed after, so that it can be tested without a cluster.
//
// It works under two names: satchel, and kubectl satchel when the program is called kubectl-satchel.
package cli
