// SPDX-License-Identifier: Apache-2.0

// Package author has the commands for authors of bundles: init, build, push, pull, tag and verify.
package author
