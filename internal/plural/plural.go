// SPDX-License-Identifier: Apache-2.0

// Package plural counts things in messages: one object, two objects.
package plural

import "strconv"

// Of is a number of things: "1 object", "2 objects".
func Of(n int, thing string) string {
	return strconv.Itoa(n) + " " + Choose(n, thing, thing+"s")
}

// Are is Of as the subject of a sentence: "1 object is", "2 objects are".
func Are(n int, thing string) string {
	return Of(n, thing) + " " + Choose(n, "is", "are")
}

// Choose is the word for one thing, or the word for several.
func Choose(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}
