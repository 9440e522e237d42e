// SPDX-License-Identifier: Apache-2.0

// Package resolve finds what a deployment is installed from, where and with which permissions: the client that
// impersonates its ServiceAccount, its inventory, its source with the artifact, and its Secrets and ConfigMaps. It
// says whether the objects have to be compared with the cluster, and decides nothing about the plan.
package resolve
