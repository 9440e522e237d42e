// SPDX-License-Identifier: Apache-2.0

// Package dryrun asks the API server what a plan would do, without writing: whether it accepts the objects, and what they
// would look like.
package dryrun
