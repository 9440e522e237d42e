// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/shard"
)

// TestShards leaves rollouts alone that another instance reconciles, until their labels are those of this one.
func TestShards(t *testing.T) {
	r := newRig(t)
	var err error
	if r.shard, err = shard.Parse("part=a"); err != nil {
		t.Fatal(err)
	}
	r.restart()
	r.publish("v1")
	r.create()
	r.steps(3)
	if object := r.get(); len(object.Finalizers) > 0 || len(object.Status.Conditions) > 0 || len(r.children()) > 0 {
		t.Errorf("a rollout of another shard was reconciled: %+v", object.Status)
	}
	r.edit(func(o *v1alpha1.BundleRollout) { o.Labels = map[string]string{"part": "a"} })
	r.until("v1 complete", complete("v1"))
}
