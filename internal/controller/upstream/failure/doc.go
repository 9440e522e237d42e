// SPDX-License-Identifier: Apache-2.0

// Package failure is the error of a reconcile of a source: why it failed, and what follows from that for
// the conditions and for the next attempt. It does not write conditions.
package failure
