// SPDX-License-Identifier: Apache-2.0

// Package preview has the commands plan and diff: what a change would do to the cluster, planned as the controller
// plans it, without writing anything.
package preview
