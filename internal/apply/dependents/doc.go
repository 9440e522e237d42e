// SPDX-License-Identifier: Apache-2.0

// Package dependents tells which other deployments a plan would leave without a package or a kind that they require. That is a
// violation of the plan, or a warning, as both deployments say.
package dependents
