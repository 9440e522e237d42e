// SPDX-License-Identifier: Apache-2.0

package rights

import "strings"

// Plural is the resource name of a kind by the usual rule, which all kinds of
// Kubernetes follow, and nearly all custom ones.
func Plural(kind string) string {
	name := strings.ToLower(kind)
	if plurals[name] {
		return name
	}
	for _, sibilant := range []string{"s", "x", "z", "ch", "sh"} {
		if strings.HasSuffix(name, sibilant) {
			return name + "es"
		}
	}
	stem, hasY := strings.CutSuffix(name, "y")
	if hasY && !strings.HasSuffix(stem, "a") && !strings.HasSuffix(stem, "e") && !strings.HasSuffix(stem, "o") && !strings.HasSuffix(stem, "u") {
		return stem + "ies"
	}
	return name + "s"
}

// plurals are kinds with plural names.
var plurals = map[string]bool{"endpoints": true, "securitycontextconstraints": true}
