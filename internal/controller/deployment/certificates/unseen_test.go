// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/controller/deployment/certificates"
)

// A Secret that could not be read when the certificates were issued, and can be
// now, is not overwritten unseen; one that is not there is created.
func TestSecretsAreNotOverwrittenUnseen(t *testing.T) {
	id := inventory.ID{Kind: "Secret", Namespace: "shop", Name: "satchel-ca-app"}
	cases := map[string]struct {
		reason  string
		hidden  bool
		verb    plan.Verb
		refused bool
	}{
		"read":             {"its content is known", false, plan.Update, false},
		"hidden and there": {"its content is not known, and may be in use", true, plan.Update, true},
		"hidden and gone":  {"nothing is lost", true, plan.Create, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			issued := &certificates.Issuance{Hidden: map[inventory.ID]bool{id: c.hidden}}
			made := &plan.Plan{Stages: []plan.Stage{{Actions: []plan.Action{{Object: plan.Object{ID: id}, Verb: c.verb}}}}}
			if err := issued.Unseen(made); (err != nil) != c.refused {
				t.Errorf("%s: %v, want it refused: %v", c.reason, err, c.refused)
			}
		})
	}
}
