// SPDX-License-Identifier: Apache-2.0

// Package registryv1 renders OLM's registry+v1 bundles to plain objects, without OLM.
//
// Two tables define the format: validators (package validate) look for what is wrong with a bundle (package bundle),
// generators make the objects, family by family. All are pure functions, each in the file of its family. Names, contents and omissions follow OLM v1, so that a
// user can move between the two; where that has faults, the documentation lists what is done differently.
//
// Problems name rules by the letters of the rule book: P parsing, C what is supported, N namespaces, V validity, O the
// objects in common, S service accounts, R permissions, A other objects, K custom resource definitions, D deployments,
// W webhooks and their certificates.
package registryv1
