// SPDX-License-Identifier: Apache-2.0

// Package render converts the bundle of a deployment to objects, in worker processes, without blocking a
// worker of the controller meanwhile, and shares the memory for decoded objects between namespaces. It finds neither
// sources nor inputs, and plans nothing.
package render
