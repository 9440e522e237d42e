// SPDX-License-Identifier: Apache-2.0

// Package closure finds what else has to be installed with a bundle: for each package and kind that it requires, a bundle
// that provides it, and so on. It is a pure search without a SAT solver, so that equal catalogs have equal answers:
//
//   - The bundle of the query is the one that package resolver chooses. No other one is tried.
//   - Required packages come first. The ranges that are known of a package are intersected; of the bundles left, package
//     resolver chooses. If the search fails later, it goes back and tries the next one.
//   - A required kind is met by a chosen bundle, by the cluster, by the only package of the same catalog that has the kind,
//     or by the only one of the catalogs with the highest priority. Several are refused.
//   - Of the alternatives of a constraint, one that is met already counts, or else the first that leads to an answer.
//
// Nothing is installed by it: the answer is for a review.
package closure
