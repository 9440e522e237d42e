// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/spec/planning"
)

// An inventory and the rest of its deployment fit into what etcd stores, however large the spec is. What is stored already may
// be stored again, even if the spec has grown since.
func TestF43RoomBesideTheSpec(t *testing.T) {
	const etcd = 3 << 19
	d := &v1alpha1.BundleDeployment{}
	last := inventory.Limit(etcd)
	for values := 0; values <= 400<<10; values += 50 << 10 {
		d.Spec.Helm = &v1alpha1.HelmOptions{Values: &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"a":%q}`, strings.Repeat("x", values))}}
		room := planning.RoomFor(d)
		full := d.DeepCopy()
		full.Status.Inventory = &v1alpha1.Inventory{Compressed: base64.StdEncoding.EncodeToString(make([]byte, room))}
		stored, err := json.Marshal(full)
		if err != nil {
			t.Fatal(err)
		}
		if len(stored) > etcd-100<<10-values || room >= last {
			t.Errorf("%d bytes of values leave %d bytes, %d before, and make an object of %d", values, room, last, len(stored))
		}
		if again := planning.RoomFor(full); again < room || again > room+room/20 {
			t.Errorf("%d bytes of values leave %d bytes, and %d once they are taken", values, room, again)
		}
		last = room
	}
	d.Status.Inventory = &v1alpha1.Inventory{Compressed: strings.Repeat("A", 1<<20)}
	if room := planning.RoomFor(d); room < 768<<10 {
		t.Errorf("an inventory of 768 KiB is stored, and only %d bytes may be stored again", room)
	}
}
