// SPDX-License-Identifier: Apache-2.0

// Package hooks runs the hooks of a bundle as the tenant, one step of one hook in each call. When hooks run, and what
// happens when one fails, is decided by the deployment controller.
package hooks
