// SPDX-License-Identifier: Apache-2.0

// Package fields compares two states of an object field by field, for users: the changes
// of an apply, without fields that only an API server writes. Lists are compared by the
// keys of their items where they have some, so that an inserted item does not make
// all others differ.
//
// Values of Secrets are never returned, nor anything that would tell two
// of them apart: only that they differ. The same holds for annotations in which tools
// keep a copy of the whole object.
//
// It is pure.
package fields
