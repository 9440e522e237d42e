// SPDX-License-Identifier: Apache-2.0

// Package impact says what an upgrade changes for people: who may do what he could not
// before, which definitions of custom resources change and how, which images come, and
// which workloads restart.
//
// It is a pure function of the objects before and after, and bounded in time and memory
// whatever these contain. Where something cannot be told from them, such as what a role
// allows that is not among them, that counts as new and is named.
package impact
