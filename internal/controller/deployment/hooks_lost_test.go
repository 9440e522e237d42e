// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// After a lost status, as in a restore from a backup, hooks of the applied revision do not run again: also if the inventory
// is rebuilt by one reconcile and the plan made by a later one, with and without the controller's volume. A later or waiting
// upgrade runs its hooks.
func TestHooksAfterALostStatus(t *testing.T) {
	t.Parallel()
	chart := func(value string) fstest.MapFS {
		return charted(fstest.MapFS{
			"a.yaml":  configMap("object", value),
			"h1.yaml": hookMap("installed", hookTerms("post-install", 0, ""), value),
			"h2.yaml": hookMap("upgraded", hookTerms("post-upgrade", 0, ""), value),
		})
	}
	for name, tc := range map[string]struct {
		volume, upgraded bool // the volume is kept; another revision was published meanwhile
	}{
		"status": {true, false}, "status and volume": {false, false}, "status, with an upgrade": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			namespace := r.namespace(t)
			r.publish(t, namespace, "app", "v1", chart("one"))
			key := r.deploy(t, namespace, "app", both(helmed, left))
			t.Cleanup(func() { r.undrive(t, key) })
			d := r.drive(t, key, nil)
			d.ready(t)
			mark := r.mark(t)
			r.loses(t, key, v1alpha1.BundleDeploymentStatus{})
			if !tc.volume {
				d.cache = t.TempDir()
			}
			if tc.upgraded {
				r.publish(t, namespace, "app", "v2", chart("two"))
			}
			d = d.again(t, nil)
			d.DoNotWaitForConversions() // the plan is made by another reconcile than that which finds the objects
			d.ready(t)
			ran := r.created(t, namespace, mark)
			want := []string(nil)
			if tc.upgraded {
				want = []string{"upgraded"}
			}
			if !slices.Equal(ran, want) {
				t.Errorf("after the loss %v were created, want %v", ran, want)
			}
			if listed := d.deployment(t).Status.Inventory; listed.Recovered {
				t.Error("it counts as recovered still")
			}
			if tc.upgraded {
				return
			}
			r.publish(t, namespace, "app", "v2", chart("two"))
			d.ready(t)
			r.eventually(t, t.Context(), "the upgrade is applied", func(ctx context.Context) (bool, string) {
				d.reconcile(t)
				return r.value(t, ctx, namespace, "object") == "two" && isReady(d.deployment(t)), describe(d.deployment(t))
			})
			if ran := r.created(t, namespace, mark); !slices.Equal(ran, []string{"upgraded"}) {
				t.Errorf("by the upgrade %v were created", ran)
			}
		})
	}
}
