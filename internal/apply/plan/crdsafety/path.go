// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"regexp"
	"strings"
)

// root is how crdify calls the root of a schema.
const root = "^"

// pathOf is a path of crdify for people: .spec.size, and . for the root.
func pathOf(property string) string {
	if path := strings.TrimPrefix(property, root); path != "" {
		return path
	}
	return "."
}

var composition = regexp.MustCompile(`\.(allOf|anyOf|oneOf)\[[0-9]+\]`)

// composed tells whether a path lies inside of allOf, anyOf or oneOf, where the
// place in the list means nothing.
func composed(property string) bool { return composition.MatchString(property) }

// longestWords bounds the description of one change: patterns and enumerations
// come from the bundle.
const longestWords = 200

// words puts a message of crdify on one line and bounds it.
func words(message string) string {
	message = strings.ReplaceAll(strings.Join(strings.Fields(message), " "), " : ", ": ")
	if len(message) > longestWords {
		message = strings.ToValidUTF8(message[:longestWords], "") + "..."
	}
	return message
}
