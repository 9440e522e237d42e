// SPDX-License-Identifier: Apache-2.0

// Package reference writes pages of docs/reference from what the code says: the fields of each kind from its
// CRD, and the reasons of conditions from the comments of the API.
//
// Generators of other projects start from Go types and leave out CEL rules. These pages start from the CRD, which is what
// the API server enforces, and list fields by the path that users write.
package reference

import "strings"

// written says where a page comes from.
const written = "<!-- Written by `make generate` from %s. -->\n\n"

// cell is a text in one line of a table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(strings.Join(strings.Fields(text), " "))
}
