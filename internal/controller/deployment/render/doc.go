// SPDX-License-Identifier: Apache-2.0

// Package render converts the bundle of a deployment to objects, in worker processes, and shares the
// memory for decoded objects among deployments. It finds neither sources nor inputs, and plans nothing.
package render
