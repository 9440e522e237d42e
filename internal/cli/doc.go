// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of Satchel: the root command, and the program's start and end. The commands are in
// one package for each task (see, preview, act, ...), what they share is in kit and printer, and what people are shown
// is in internal/view. What a command says is built as a value first and printed after, so that it can be tested without
// a cluster. Tests that drive whole commands are here, because they share one control plane.
//
// It works under two names: satchel, and kubectl satchel when the program is called kubectl-satchel.
package cli
