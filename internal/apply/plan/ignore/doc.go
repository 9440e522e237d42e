// SPDX-License-Identifier: Apache-2.0

// Package ignore holds the rules of a spec that exclude fields of objects from drift correction, and removes such fields
// from objects. It is pure.
package ignore
