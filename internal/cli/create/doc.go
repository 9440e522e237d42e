// SPDX-License-Identifier: Apache-2.0

// Package create is the command create: a BundleDeployment or a BundleSource from flags, on the cluster or as a manifest.
package create
