// SPDX-License-Identifier: Apache-2.0

// Package run has the commands run and cleanup: a bundle from a folder on a cluster, without a registry.
package run
