// SPDX-License-Identifier: Apache-2.0

// Package overlay adapts the objects of a bundle, whatever format they come from, without the bundle being changed: patches,
// names, images, variables, common metadata and moved images, in this order. It is pure.
//
// Patches, names and images mean what they mean in kustomize, variables and common metadata what they mean in Flux. The
// library of kustomize is asked for strategic merges only: each other step is one walk over the objects, so that the time
// grows with their number, not with its square.
package overlay
