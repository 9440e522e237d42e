// SPDX-License-Identifier: Apache-2.0

// Package plan decides what will be written, in which order, what is pruned
// and what is refused. Observing gathers one Input; Make and Removal are pure
// functions of it, so that what is shown is what is executed.
//
// All violations are found at once and nothing has been touched then.
package plan
