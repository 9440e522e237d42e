// SPDX-License-Identifier: Apache-2.0

// Package author has the command bundle, with what authors of bundles need: init, build, push, pull, tag and verify.
package author
