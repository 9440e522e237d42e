// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/artifact/lastapplied"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/convert"
)

const oldLayout = `{"revision":"v1","target":"uid","objects":[{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}]}`

// A snapshot of the layout without certificates is read and written unchanged.
func TestF30SnapshotOfTheOldLayout(t *testing.T) {
	snapshots, err := lastapplied.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshots.Save("uid", []byte(oldLayout)); err != nil {
		t.Fatal(err)
	}
	last, found, err := snapshot.Read(snapshots, "uid")
	if err != nil || !found || len(last.Objects) != 1 || len(last.Certificates) != 0 {
		t.Fatalf("read %+v, found %v (%v)", last, found, err)
	}
	if listed := last.Inventory(certificate.AuthorityID(inventory.Owner{Namespace: "shop", Name: "app"})); listed.Len() != 1 {
		t.Errorf("the inventory lists %v, want the ConfigMap alone", listed.Entries)
	}
	again, err := json.Marshal(last)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(oldLayout, string(again)); diff != "" {
		t.Errorf("without certificates the layout is another one (-want +got):\n%s", diff)
	}
}

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
