// SPDX-License-Identifier: Apache-2.0

// Package migrate has the command migrate: from Flux, Argo CD and OLM manifests to BundleDeployments. The translation
// itself is internal/migrate.
package migrate
