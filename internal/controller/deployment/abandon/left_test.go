// SPDX-License-Identifier: Apache-2.0

package abandon_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/controller/deployment/abandon"
)

// An event has room for 1,000 bytes: it has some names of either kind and says where the others are.
func TestNoteOfManyObjects(t *testing.T) {
	var many []inventory.ID
	for i := range 500 {
		many = append(many, inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprintf("config-%03d", i)})
	}
	note := abandon.Left{Marked: many, Unmarked: many, Why: "after it had failed for 10m0s"}.Note("the removal")
	if len(note) > 1000 {
		t.Errorf("%d bytes: %s", len(note), note)
	}
	for _, text := range []string{"500 objects stay with their labels", "500 objects stay, annotated satchel.dev/orphaned", "ConfigMap shop/config-000, ", " more, which the log of the controller lists"} {
		if !strings.Contains(note, text) {
			t.Errorf("%q is not in: %s", text, note)
		}
	}
	if got := (abandon.Left{Why: "now", Cause: "a hook failed"}).Note("the removal"); got != "the removal was abandoned now; no objects are left; it failed with: a hook failed" {
		t.Error(got)
	}
}
