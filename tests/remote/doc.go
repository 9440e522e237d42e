// SPDX-License-Identifier: Apache-2.0

// Package remote tests deployments to another cluster that really is another one: there are two
// control planes. The release suite (SATCHEL_FULL=1) also kills the API server of the other one.
package remote
