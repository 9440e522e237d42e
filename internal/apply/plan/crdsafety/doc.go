// SPDX-License-Identifier: Apache-2.0

// Package crdsafety judges whether what uses a CustomResourceDefinition survives
// that it becomes another: its stored resources stay readable and valid, its
// versions stay served, and no field is lost. It is a pure function of the two.
//
// The comparisons are crdify's where it has one; what crdify would only call
// unhandled is judged here, so that widening passes and every refusal has a path
// and a sentence. The walk is not crdify's, for the CRDs may be written to take long:
// what one judgement takes is bounded. docs/adr/0007-crd-upgrade-safety.md has the
// rules, the limits, and why.
package crdsafety
