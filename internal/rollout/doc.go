// SPDX-License-Identifier: Apache-2.0

// Package rollout decides what a BundleRollout does next: which revision it moves to, what the BundleDeployment of each
// cluster contains, in which state each cluster is, which clusters are started or removed now, and what it waits for.
//
// It is pure: it has no client, no clock and no environment. Its callers observe, and pass what they saw; what it decides is
// recorded in the status before it is carried out. A preview on the command line uses the same functions.
//
// The caller keeps four promises, on which the limits of a wave rest:
//
//   - It has listed the BundleDeployments once past its cache since it began, and again when the status that it decides on was
//     written by another process: what that one saw, and removed from status.starting, may be missing in this cache.
//   - It writes the starts of a decision to status.starting, with the resourceVersion of the status that it decided on,
//     before it changes a BundleDeployment, and removes an entry when it sees the number of the start on the BundleDeployment.
//   - It carries recorded starts out before it decides again, unless the rollout is suspended.
//   - It forgets what it observed, and begins again, with another Began, when its clock was set or the machine slept: a time that has not passed makes
//     no cluster overdue.
package rollout
