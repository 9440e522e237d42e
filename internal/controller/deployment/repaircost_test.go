// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Repairs in a large deployment do not write the whole inventory each; it is stored a little later, with all of them.
func TestRepairsShareOneStatusWrite(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	files := fstest.MapFS{}
	for i := range 320 {
		name := fmt.Sprintf("c%03d", i)
		files[name+".yaml"] = configMap(name, "one")
	}
	published := r.publish(t, namespace, "app", "v1", files)
	key := r.deploy(t, namespace, "app", nil)
	before := r.ready(t, key, published.Revision)
	for _, name := range []string{"c007", "c300"} {
		r.patch(t, aConfigMap(namespace, name), `{"data":{"value":"x"}}`)
		r.eventually(t, t.Context(), name+" is as the bundle has it", func(context.Context) (bool, string) {
			o := aConfigMap(namespace, name)
			return r.intact(t, o), fmt.Sprint(o.Object)
		})
	}
	writes := map[string]bool{}
	r.until(t, key, "the repaired objects are stored", func(d *v1alpha1.BundleDeployment) bool {
		if d.Status.Inventory.Compressed == before.Status.Inventory.Compressed {
			return false
		}
		writes[d.Status.Inventory.Compressed] = true
		return true
	})
	after := r.ready(t, key, published.Revision)
	writes[after.Status.Inventory.Compressed] = true
	if len(writes) != 1 || after.Status.Inventory.Count != 320 {
		t.Errorf("%d inventories were stored for two repairs, want 1; %d objects are listed", len(writes), after.Status.Inventory.Count)
	}
}
