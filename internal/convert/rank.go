// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"path"
	"regexp"
	"strconv"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// numbered is a file's name that begins with a number, set off by a dash or an underscore.
var numbered = regexp.MustCompile(`^([0-9]{1,9})[-_]`)

// rankOf is the number of a manifest's file; without one it is above all numbers.
func rankOf(m manifest.Manifest) int {
	match := numbered.FindStringSubmatch(path.Base(m.File))
	if match == nil {
		return unnumbered
	}
	number, err := strconv.Atoi(match[1])
	if err != nil {
		return unnumbered
	}
	return number
}

// unnumbered is above all numbers of nine digits.
const unnumbered = 1_000_000_000

// ranks are those of the objects that run has normalized, in their order.
func ranks(manifests []manifest.Manifest) []int {
	var all []int
	for _, m := range manifests {
		if _, ok := m.Object.Object["metadata"].(map[string]any); ok {
			all = append(all, rankOf(m))
		}
	}
	return all
}
