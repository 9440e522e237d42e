// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/approvals"
	"github.com/satchel-dev/satchel/internal/controller/rollout"
	"github.com/satchel-dev/satchel/internal/controller/rollout/approval"
	"github.com/satchel-dev/satchel/internal/controller/shard"
)

// TestApprovalsAreCollected deletes BundleApprovals of rollouts that have ended, and none that the rollout or a Git tool may still need.
func TestApprovalsAreCollected(t *testing.T) {
	r := newRig(t)
	r.publish("v1")
	r.create(func(spec *v1alpha1.BundleRolloutSpec) {
		spec.Strategy.Waves = []v1alpha1.RolloutWave{wave("one", func(w *v1alpha1.RolloutWave) { w.Approval = v1alpha1.WaveApprovalBefore })}
	})
	pending := r.until("approval", because(v1alpha1.ReasonApprovalPending))
	past, other := -time.Hour, "sha256:"+digestOf("other")[len("sha256:"):]
	put := func(name, plan, manager string, isUsed bool, expires time.Duration, denies bool, of string) {
		t.Helper()
		one := &v1alpha1.BundleApproval{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}}
		one.Spec = v1alpha1.BundleApprovalSpec{Rollout: of, Plan: plan, Decision: v1alpha1.DecisionApprove}
		if denies {
			one.Spec.Decision = v1alpha1.DecisionDeny
		}
		if expires != 0 {
			one.Spec.ExpirationTime = new(metav1.NewTime(time.Now().Add(expires)))
		}
		if err := shared.admin.Create(t.Context(), one, client.FieldOwner(manager)); err != nil {
			t.Fatal(err)
		}
		if isUsed {
			before := one.DeepCopy()
			one.Status.ConsumedTime = new(metav1.Now())
			if err := shared.admin.Status().Patch(t.Context(), one, client.MergeFrom(before), client.FieldOwner(rollout.FieldManager)); err != nil {
				t.Fatal(err)
			}
		}
	}
	const command, git = v1alpha1.CommandFieldManager, "kustomize-controller"
	put("used", other, command, true, 0, false, name)
	put("used-from-git", other, git, true, 0, false, name)
	put("used-from-git-expired", other, git, true, past, false, name)
	put("expired", other, git, false, past, false, name)
	put("valid", other, command, false, time.Hour, false, name)
	put("denial", other, command, false, 0, true, name)
	put("denial-expired", other, git, false, past, true, name)
	put("of-no-rollout", other, command, true, 0, false, "gone")
	put("pending", pending.Status.Waves[0].Plan, git, false, past, false, name)
	live := &countingReader{Reader: r.client}
	part, err := shard.Parse("part=a")
	if err != nil {
		t.Fatal(err)
	}
	collectorOf := func(part shard.Shard) *approvals.Collector {
		collector := approval.Marker{Client: r.client, Live: live, Manager: rollout.FieldManager}.Collector(part)
		collector.Retention = 24 * time.Hour
		return collector
	}
	collector := collectorOf(shard.Shard{})
	collect := func(after time.Duration, want ...string) {
		t.Helper()
		collector.Now = func() time.Time { return time.Now().Add(after) }
		if err := collector.Collect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(r.approvals())); !slices.Equal(got, want) {
			t.Errorf("after %s: %v", after, got)
		}
	}
	collect(23*time.Hour, "denial", "denial-expired", "expired", "of-no-rollout", "pending", "used", "used-from-git", "used-from-git-expired", "valid")
	all := collector // the rollout is of another shard: only what is about no rollout ends
	collector = collectorOf(part)
	collect(24*time.Hour+time.Minute, "denial", "denial-expired", "expired", "pending", "used", "used-from-git", "used-from-git-expired", "valid")
	collector = all
	collect(24*time.Hour+time.Minute, "denial", "pending", "used-from-git", "valid")
	before := live.gets
	collect(24*time.Hour+2*time.Minute, "denial", "pending", "used-from-git", "valid")
	if before == 0 || live.gets != before {
		t.Errorf("%d requests for what is kept, %d before: want some before, and none any more", live.gets-before, before)
	}
	put("in-history", pending.Status.Waves[0].Plan, command, false, 0, false, name)
	r.until("v1 complete", complete("v1"))
	collect(48*time.Hour+time.Minute, "denial", "in-history", "used-from-git")
}

// countingReader counts the objects that are read.
type countingReader struct {
	client.Reader
	gets int
}

// Get implements client.Reader.
func (c *countingReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c.gets++
	return c.Reader.Get(ctx, key, object, options...)
}

// approvals are the BundleApprovals of the namespace, by name.
func (r *rig) approvals() map[string]v1alpha1.BundleApproval {
	r.t.Helper()
	var list v1alpha1.BundleApprovalList
	if err := shared.admin.List(r.t.Context(), &list, client.InNamespace(r.namespace)); err != nil {
		r.t.Fatal(err)
	}
	found := map[string]v1alpha1.BundleApproval{}
	for _, one := range list.Items {
		found[one.Name] = one
	}
	return found
}
