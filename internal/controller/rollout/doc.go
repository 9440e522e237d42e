// SPDX-License-Identifier: Apache-2.0

// Package rollout is the controller of BundleRollout. It observes the clusters and their BundleDeployments, passes what it saw to
// package internal/rollout, which decides, records the decision in the status, and then carries it out: it writes the
// BundleDeployments and nothing else. Because each start has a number that is recorded first, a process may end at any point.
package rollout
