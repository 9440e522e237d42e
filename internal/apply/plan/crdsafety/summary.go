// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"fmt"
	"strings"
)

// mostNamed is how many changes of one CRD are named.
const mostNamed = 10

// Summary names the first changes, and counts the others.
func Summary(changes []Change) string {
	var words []string
	for _, change := range changes[:min(len(changes), mostNamed)] {
		words = append(words, change.String())
	}
	if more := len(changes) - mostNamed; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, "; ")
}
