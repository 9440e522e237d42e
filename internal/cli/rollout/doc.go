// SPDX-License-Identifier: Apache-2.0

// Package rollout holds the commands about BundleRollouts.
package rollout
