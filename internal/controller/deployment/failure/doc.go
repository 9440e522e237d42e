// SPDX-License-Identifier: Apache-2.0

// Package failure is the error of a step of a deployment: why it failed or waits, and what follows from
// that for the conditions and for the next attempt. It does not write conditions.
package failure
