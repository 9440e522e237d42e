// SPDX-License-Identifier: Apache-2.0

// Package plan decides what is written, in which order, what is pruned
// and what is refused. Observing gathers one Input; Make and Removal are pure
// functions of it, so that the plan that is shown is the one that is executed.
//
// All violations are found at once, before anything is changed.
package plan
