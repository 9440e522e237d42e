// SPDX-License-Identifier: Apache-2.0

// Package figures registers the metrics of the deployment controller. What they count is decided by
// the callers.
package figures
