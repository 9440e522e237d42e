// SPDX-License-Identifier: Apache-2.0

// Package migrate turns what other installers are told into what Satchel is told: RukPak's Bundles and
// BundleDeployments, OLM's Subscriptions and OLM v1's ClusterExtensions into BundleSources and BundleDeployments.
//
// It is a pure function of its input. Nothing is dropped silently: each field is translated, or a note says that it has no
// counterpart; what cannot be translated at all is refused, with file and document.
package migrate
