// SPDX-License-Identifier: Apache-2.0

// Package inventory records which objects a deployment owns and the last known
// state of each. An inventory is a sorted set of entries; it is stored in the
// status of the deployment before the first object is written, so that a
// killed apply leaves no unrecorded objects behind.
//
// The package is pure: no cluster, no clock, no network.
package inventory
