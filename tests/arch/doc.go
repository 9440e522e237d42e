// SPDX-License-Identifier: Apache-2.0

// Package arch holds the rules of Satchel's structure as tests: which package may import which, what may
// be linked into a controller, how old a dependency may be, how long a function may get. Each rule says
// why it is there and what to do about a violation.
//
// Run it with -count=1: the test cache does not see what `go list` reads.
package arch
