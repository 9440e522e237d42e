// SPDX-License-Identifier: Apache-2.0

// Package config holds the manifests by which Satchel is installed, as kustomizations: crd, rbac, manager,
// network, default (all of them), overlays, monitoring, argocd, flux and samples. Its tests render them and check what they grant and
// how the Pods run.
package config
