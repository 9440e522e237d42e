// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/convert"
)

// With a lost status, what certify added is found through the snapshot.
func TestSnapshotListsTheSecrets(t *testing.T) {
	last := snapshot.Snapshot{Target: "uid", Certificates: []convert.Certificate{{Namespace: "tools", Secret: "web-cert"}}}
	listed := last.Inventory(certificate.AuthorityID(inventory.Owner{Namespace: "shop", Name: "app"}))
	for _, id := range []inventory.ID{{Kind: "Secret", Namespace: "shop", Name: "satchel-ca-app"}, {Kind: "Secret", Namespace: "tools", Name: "web-cert"}} {
		if entry, found := listed.Get(id); !found || entry.Confirmed() {
			t.Errorf("%s: listed %v, confirmed %v; want it listed as planned", id, found, entry.Confirmed())
		}
	}
}
