// SPDX-License-Identifier: Apache-2.0

// Package overlay adapts the objects of a bundle, whatever format they come from, without the bundle being changed: it runs
// processors (patches, names, images, variables, metadata and moved images) in the order of their list. Each one sees what
// those before it made of the objects. It is pure.
//
// Patches, names and images mean what they mean in kustomize, variables and metadata what they mean in Flux. The
// library of kustomize is asked for strategic merges only: each other step is one walk over the objects, so that the time
// grows with their number, not with its square.
package overlay
