// SPDX-License-Identifier: Apache-2.0

// Package crds reads the parts of a CustomResourceDefinition that decide how its resources are served, stored and
// converted. It is pure. Whether a change of a CRD is safe is decided by plan/crdsafety.
package crds
