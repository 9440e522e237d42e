// SPDX-License-Identifier: Apache-2.0

// Package kinds tests deployments on a cluster that serves thousands of kinds in hundreds of API
// groups, in the release suite.
package kinds
