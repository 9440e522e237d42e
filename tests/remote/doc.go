// SPDX-License-Identifier: Apache-2.0

// Package remote tests deployments to another cluster that really is another one: two
// control planes, of which the release suite starts both.
package remote
