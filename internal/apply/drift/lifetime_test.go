// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// TestLifetime reopens watches of other clusters rarely, and never all at once.
func TestLifetime(t *testing.T) {
	o := Options{}.defaulted()
	for name, tc := range map[string]struct {
		of      tenant.Identity
		longest time.Duration
	}{
		"this cluster":    {tenant.Identity{Namespace: "a", ServiceAccount: "b"}, 5 * time.Minute},
		"another cluster": {tenant.Identity{Namespace: "a", Cluster: "c", Host: "h"}, time.Hour},
	} {
		least, most := time.Duration(1<<62), time.Duration(0)
		for range 1000 {
			one := o.lifetime(tc.of)
			least, most = min(least, one), max(most, one)
		}
		if least < tc.longest/2 || most > tc.longest || most-least < tc.longest/4 {
			t.Errorf("%s: watches live from %s to %s, want %s less up to a half", name, least, most, tc.longest)
		}
	}
}
