// SPDX-License-Identifier: Apache-2.0

// Package impact describes the effect of an upgrade on users: which subjects get new
// permissions, which CRDs change and how, which images are new, and
// which workloads restart.
//
// It is a pure function of the objects before and after, and bounded in time and memory
// for any input. Unknown permissions, such as those of a role
// that is not among the objects, count as new and are named.
package impact
