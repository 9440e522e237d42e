// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestValidatorTable pins what defines the format: each validator once, in this order.
func TestValidatorTable(t *testing.T) {
	var rules []string
	for _, v := range validators {
		rules = append(rules, v.rule)
	}
	if diff := cmp.Diff([]string{"C1", "C4", "V1", "V2", "V3", "V4", "V5", "V6", "V7", "V8", "V9", "V10", "V11", "V12", "V13", "V14", "D1", "S1", "W2", "W3"}, rules); diff != "" {
		t.Errorf("validators (-want +got):\n%s", diff)
	}
}
