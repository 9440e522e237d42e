// SPDX-License-Identifier: Apache-2.0

// Package translate translates the objects of other installers into Satchel's: RukPak's Bundles and BundleDeployments, OLM's
// Subscriptions and CatalogSources, and OLM v1's ClusterExtensions and ClusterCatalogs, and the mirror sets of OpenShift.
//
// It is a pure function of its input. Nothing is dropped silently: each field is translated, or a note says that it has no
// counterpart; an object that cannot be translated at all is refused, with file and document.
package translate
