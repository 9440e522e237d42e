// SPDX-License-Identifier: Apache-2.0

// Package resolver chooses the bundle of a package that a deployment goes to: a pure function of the query, of what is
// installed, and of what the catalogs say about the package. It has no clock, no network and no cluster.
//
// The rules are those of OLM v1's operator-controller, so that a package resolves to the same bundle on both. They have
// numbers, which comments and tests refer to:
//
//	R1   A catalog without the package is skipped. A catalog that cannot be read fails the resolution.
//	R2   The range is one of Masterminds/semver, checked against the version without its release.
//	R3   The version is that of the first property olm.package; build metadata that reads as a release is the release.
//	R4   With channels, candidates and edges are their entries only. Channel heads have no special role.
//	R5   A successor replaces, skips, or has a skipRange with what is installed; or it is the installed version.
//	R6   Deprecated bundles come last, then the highest version and release comes first, then the catalog's order.
//	R7   The first one is the catalog's candidate; there is no second choice.
//	R8   Candidates that are not deprecated win, then the highest priority. A tie is refused.
//	R9   Refusals have the text of OLM v1. Details says more.
//	R10  Dependencies of the winner are no reason to refuse it here; OLM v1 refuses them.
//	R11  Deprecations are those of the winner's catalog; OLM v1 may report those of another one.
//	R12  The same version with the same image digest in several catalogs is no tie; in OLM v1 it is.
//	R13  SelfCertified does not go to a lower version unless downgrade is Allow; in OLM v1 it does.
package resolver
