// SPDX-License-Identifier: Apache-2.0

// Package pruning says which objects a plan may delete, when, and how many at once.
package pruning
