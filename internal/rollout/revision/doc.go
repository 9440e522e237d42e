// SPDX-License-Identifier: Apache-2.0

// Package revision has the revisions of a BundleRollout, and renders the BundleDeployment of each cluster from one: a pure function
// of the data of the revision and the facts of the cluster.
package revision
