// SPDX-License-Identifier: Apache-2.0

// Package valueset decides from the keywords of two schemas whether each value that
// one accepts is accepted by the other. It compares sets of values, not keywords:
// `enum: [true, false]` on a boolean and `format: int64` on an integer exclude nothing.
//
// It is sound and incomplete: a constraint that it drops excludes no value, and one
// that it keeps may exclude one. It goes by what the API server validates, with the
// validation library of the API server where there are few values.
package valueset
