// SPDX-License-Identifier: Apache-2.0

package plural_test

import (
	"testing"

	"github.com/satchel-dev/satchel/internal/plural"
)

func TestPlural(t *testing.T) {
	for n, want := range map[int][2]string{0: {"0 objects", "0 objects are"}, 1: {"1 object", "1 object is"}, 2: {"2 objects", "2 objects are"}} {
		if of, are := plural.Of(n, "object"), plural.Are(n, "object"); of != want[0] || are != want[1] {
			t.Errorf("%d: %q, %q", n, of, are)
		}
	}
}
