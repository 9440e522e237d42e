// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// amount is a number, or a percentage of a number of clusters.
type amount struct {
	value   int
	percent bool
}

// Amounts of fields that are left out.
var (
	defaultMaxConcurrency = amount{value: 1}
	defaultMaxUnavailable = amount{value: 100, percent: true}
	defaultMaxFailures    = amount{}
	defaultRemovalLimit   = amount{value: 10, percent: true}
)

// readAmount reads a field; one that is left out is the default. The least is the smallest number that is accepted.
func readAmount(field string, from *intstr.IntOrString, otherwise amount, least int) (amount, error) {
	if from == nil {
		return otherwise, nil
	}
	read := amount{value: from.IntValue()}
	if from.Type == intstr.String {
		digits, isPercentage := strings.CutSuffix(from.StrVal, "%")
		value, err := strconv.Atoi(digits)
		if err != nil || !isPercentage || value > 100 {
			return amount{}, fmt.Errorf("%s is %q: it has to be a number, or a percentage such as 20%%", field, from.StrVal)
		}
		read = amount{value: value, percent: true}
	}
	if read.value < least {
		return amount{}, fmt.Errorf("%s is %s: it has to be at least %d", field, from.String(), least)
	}
	return read, nil
}

// roundedUp is the amount of so many clusters, rounded up, at least 1 and at most all.
func (a amount) roundedUp(of int) int {
	value := a.value
	if a.percent {
		value = (a.value*of + 99) / 100
	}
	return min(max(value, 1), of)
}

// roundedDown is the amount of so many clusters, rounded down, at least the given number and at most all.
func (a amount) roundedDown(of, least int) int {
	value := a.value
	if a.percent {
		value = a.value * of / 100
	}
	return min(max(value, least), of)
}
