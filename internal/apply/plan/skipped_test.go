// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// TestSkippedObjects: skipped objects are neither planned nor forgotten.
func TestSkippedObjects(t *testing.T) {
	gadget := inventory.ID{Group: "example.org", Kind: "Gadget", Namespace: "shop", Name: "g"}
	bare := inventory.ID{Group: "example.org", Kind: "Gadget", Name: "g"}
	for name, c := range map[string]struct {
		reason   string
		desired  []plan.Object
		skipped  inventory.ID
		previous []inventory.Entry
		want     []inventory.ID
	}{
		"new":              {"what was never there is not listed", []plan.Object{desired(one, "")}, gadget, nil, []inventory.ID{one}},
		"applied before":   {"its kind may be gone for a moment only", []plan.Object{desired(one, "")}, gadget, []inventory.Entry{confirmed(one), confirmed(gadget)}, []inventory.ID{one, gadget}},
		"without its name": {"the bundle leaves the namespace to the installation", []plan.Object{desired(one, "")}, bare, []inventory.Entry{confirmed(gadget)}, []inventory.ID{one, gadget}},
		"nothing else":     {"a bundle of optional objects is not empty", nil, gadget, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan.Make(plan.Input{Owner: owner, Desired: c.desired, Skipped: []inventory.ID{c.skipped}, Previous: inventory.New("", c.previous...)})
			if len(got.Violations)+len(got.Prune) > 0 || len(got.Skipped) != 1 || got.Len() != len(c.desired) {
				t.Errorf("%s: violations %v, prune %v, skipped %v", c.reason, got.Violations, got.Prune, got.Skipped)
			}
			var ids []inventory.ID
			for _, entry := range got.Inventory.Entries {
				ids = append(ids, entry.ID)
			}
			if diff := cmp.Diff(c.want, ids, cmp.Transformer("text", inventory.ID.String)); diff != "" {
				t.Errorf("%s: inventory (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}
