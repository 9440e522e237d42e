// SPDX-License-Identifier: Apache-2.0

// Package act has the commands that ask the controllers for something: approve, deny, reconcile, retry, rollback,
// suspend, resume and wait; and export, which prints what to commit to Git.
package act
