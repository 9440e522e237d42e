// SPDX-License-Identifier: Apache-2.0

// Package catalogs resolves spec.catalog of a BundleDeployment: it reads what the visible BundleCatalogs say about the package,
// chooses a bundle by the rules of package resolver, and pins it by digest in the BundleSource that the deployment owns. Upgrades
// start from what is installed, which moves when a plan begins to be executed.
package catalogs
