// SPDX-License-Identifier: Apache-2.0

// Package resolve finds what a deployment is installed from, where and with which permissions: the client that
// impersonates its ServiceAccount, its source with the artifact, and its Secrets and ConfigMaps. It
// decides nothing about the revision.
package resolve
