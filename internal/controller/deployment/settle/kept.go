// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"fmt"
	"slices"
	"strings"
)

// keptText says whether drift of the last applied revision is corrected, and its health, while a
// newer one fails with a message.
func (in *Input) keptText(message string) string {
	kept, leftOut := in.Kept, in.Kept.leftOut()
	unsaid := slices.DeleteFunc(slices.Clone(leftOut), func(line string) bool { return strings.Contains(message, line) })
	slices.Sort(unsaid)
	unhealthy := ""
	if kept.Settled.Health != nil && !kept.Settled.Health.Healthy() {
		unhealthy = ", and is not healthy: " + kept.Settled.Health.Message()
	}
	switch {
	case len(leftOut) == 0 && unhealthy != "":
		return unhealthy
	case len(leftOut) == 0:
		return " and is kept from drifting"
	case len(unsaid) == 0:
		return fmt.Sprintf(" and is kept from drifting, but for %d of its objects", len(leftOut)) + unhealthy
	}
	return fmt.Sprintf(" and is kept from drifting, but for %d of its objects%s\n%s", len(leftOut), unhealthy, strings.Join(unsaid, "\n"))
}

// leftOut lists the objects of the applied revision that could not be compared with the cluster or corrected, and why.
func (in *Input) leftOut() []string {
	return slices.Concat(in.Decided.LeftOut, in.Delivered.LeftOut)
}
