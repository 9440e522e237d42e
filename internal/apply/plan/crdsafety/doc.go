// SPDX-License-Identifier: Apache-2.0

// Package crdsafety judges whether the users of a CustomResourceDefinition survive
// a change of it: its stored resources stay readable and valid, its
// versions stay served, and no field is lost. It is a pure function of both CRDs.
//
// The comparisons are crdify's where it has one; what crdify would only call
// unhandled is judged here, so that widening passes and every refusal has a path
// and a message. The walk is not crdify's, for CRDs may be written to take long:
// the cost of one judgement is bounded. docs/adr/0007-crd-upgrade-safety.md has the
// rules, the limits, and why.
package crdsafety
