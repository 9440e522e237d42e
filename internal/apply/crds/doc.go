// SPDX-License-Identifier: Apache-2.0

// Package crds reads which kinds CustomResourceDefinitions define, and the parts that decide how their resources are
// served, stored and converted. It is pure. Whether a change of a CRD is safe is decided by plan/crdsafety.
package crds
