// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/fleet"
)

// patience bounds each wait: on a quiet machine they take seconds.
const patience = 4 * time.Minute

// install creates the rollout, and waits until all clusters have the first version.
func (d *demo) install(ctx context.Context) error {
	d.chapter("Install version v1, in three waves")
	if err := d.world.Publish(ctx, "v1"); err != nil {
		return err
	}
	several := func(atOnce int) func(*v1alpha1.RolloutWave) {
		return func(w *v1alpha1.RolloutWave) { w.MaxConcurrency = new(intstr.FromInt(atOnce)) }
	}
	err := d.world.Create(ctx, v1alpha1.RolloutStrategy{
		Waves: []v1alpha1.RolloutWave{
			fleet.Wave("canary", func(w *v1alpha1.RolloutWave) { w.Soak = v1alpha1.Duration{Duration: 3 * time.Second} }),
			fleet.Wave("prod-eu", several(6)),
			fleet.Wave("prod-us", func(w *v1alpha1.RolloutWave) {
				several(15)(w)
				w.Approval = v1alpha1.WaveApprovalBefore
			}),
		},
		MinReady:         v1alpha1.Duration{Duration: time.Second},
		ProgressDeadline: v1alpha1.Duration{Duration: 12 * time.Second},
	})
	if err != nil {
		return err
	}
	d.say("Created the BundleRollout fleet/shop: first the canaries, one at a time, which then soak for 3 s; then prod-eu, 6 at a time;")
	d.say("then prod-us, 15 at a time, with an approval. No failure is tolerated.")
	if _, err := d.world.Await(ctx, "prod-eu to begin", patience, inWave("prod-eu", 4)); err != nil {
		return err
	}
	if err := d.satchel(ctx, "rollout", "status", "shop", "-n", "fleet"); err != nil {
		return err
	}
	if err := d.approve(ctx); err != nil {
		return err
	}
	if err := d.complete(ctx); err != nil {
		return err
	}
	return d.versions(ctx, "v1", fleet.ClusterName(0), fleet.ClusterName(size-1))
}

// approve waits until the last wave needs an approval, and gives it. No cluster of that wave has the new version before.
func (d *demo) approve(ctx context.Context) error {
	waits := func(o *v1alpha1.BundleRollout) bool { return fleet.Reason(o) == v1alpha1.ReasonApprovalPending }
	if _, err := d.world.Await(ctx, "the approval of prod-us to be needed", patience, waits); err != nil {
		return err
	}
	d.say("prod-us waits for an approval, of exactly this revision.")
	return d.satchel(ctx, "rollout", "approve", "shop", "prod-us", "-n", "fleet", "--yes", "--reason", "prod-eu is healthy")
}

// inWave wants so many clusters of a wave to be updated, while it is open.
func inWave(name string, updated int32) func(*v1alpha1.BundleRollout) bool {
	return func(o *v1alpha1.BundleRollout) bool {
		for _, w := range o.Status.Waves {
			if w.Name == name && w.StartTime != nil && w.Updated >= updated {
				return true
			}
		}
		return false
	}
}

// complete waits until all clusters have the revision.
func (d *demo) complete(ctx context.Context) error {
	began := time.Now()
	_, err := d.world.Await(ctx, "the last wave", patience, func(o *v1alpha1.BundleRollout) bool { return fleet.Reason(o) == v1alpha1.ReasonComplete })
	if err != nil {
		return err
	}
	d.say("All %d clusters have it, %s later.", size, time.Since(began).Round(time.Second))
	return nil
}

// versions wants a version on clusters.
func (d *demo) versions(ctx context.Context, want string, clusters ...string) error {
	for _, name := range clusters {
		got, err := d.world.VersionOn(ctx, name)
		if err != nil {
			return fmt.Errorf("reading what is installed on %s: %w", name, err)
		}
		if got != want {
			return fmt.Errorf("cluster %s has version %q, want %q", name, got, want)
		}
	}
	return nil
}

// failing is a cluster of prod-eu, and late one of the last wave.
const (
	failing = 6
	late    = size - 1
)

// upgrade publishes a version that one cluster refuses.
func (d *demo) upgrade(ctx context.Context) error {
	name := fleet.ClusterName(failing)
	d.chapter("Upgrade to v2, which a policy on cluster %s denies", name)
	d.world.Clusters[failing].Break(fleet.Fault{Denies: "v2"})
	if err := d.world.Publish(ctx, "v2"); err != nil {
		return err
	}
	_, err := d.world.Await(ctx, "the rollout to stop", patience, func(o *v1alpha1.BundleRollout) bool { return fleet.Reason(o) == v1alpha1.ReasonMaxFailuresExceeded })
	if err != nil {
		return err
	}
	d.say("The canaries have v2. In prod-eu one cluster failed, and the rollout stopped by itself:")
	for _, args := range [][]string{{"rollout", "status", "shop", "-n", "fleet"}, {"rollout", "clusters", "shop", "-n", "fleet", "--state", "Failed"}} {
		if err := d.satchel(ctx, args...); err != nil {
			return err
		}
	}
	if err := d.versions(ctx, "v1", name, fleet.ClusterName(late)); err != nil {
		return err
	}
	if err := d.drift(ctx); err != nil {
		return err
	}
	d.say("The policy of %s is corrected. No command is needed: the rollout goes on when the cluster has recovered.", name)
	d.world.Clusters[failing].Break(fleet.Fault{})
	if err := d.approve(ctx); err != nil {
		return err
	}
	if err := d.complete(ctx); err != nil {
		return err
	}
	return d.versions(ctx, "v2", name, fleet.ClusterName(late))
}

// drift breaks a cluster of the last wave, while the rollout is stopped.
func (d *demo) drift(ctx context.Context) error {
	name := fleet.ClusterName(late)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "shop-0"}}
	if err := d.world.Client.Delete(ctx, object); err != nil {
		return fmt.Errorf("deleting an object on %s: %w", name, err)
	}
	began := time.Now()
	_, err := d.world.Await(ctx, "the drift on "+name+" to be corrected", patience, func(*v1alpha1.BundleRollout) bool {
		return d.world.Client.Get(ctx, client.ObjectKeyFromObject(object), object) == nil
	})
	if err != nil {
		return err
	}
	d.say("Meanwhile an object was deleted on %s, of the last wave. It was put back after %s, in version %s, which that cluster runs.",
		name, time.Since(began).Round(100*time.Millisecond), object.Data["version"])
	return nil
}

// goBack begins a version, and takes it back.
func (d *demo) goBack(ctx context.Context) error {
	d.chapter("Upgrade to v3, and take it back in the middle of prod-eu")
	if err := d.world.Publish(ctx, "v3"); err != nil {
		return err
	}
	if _, err := d.world.Await(ctx, "v3 in prod-eu", patience, inRun("prod-eu", 2)); err != nil {
		return err
	}
	for _, args := range [][]string{{"rollout", "suspend", "shop", "-n", "fleet"}, {"rollout", "abort", "shop", "-n", "fleet"}} {
		if err := d.satchel(ctx, args...); err != nil {
			return err
		}
	}
	if err := d.complete(ctx); err != nil {
		return err
	}
	if err := d.versions(ctx, "v2", fleet.ClusterName(0), fleet.ClusterName(failing), fleet.ClusterName(late)); err != nil {
		return err
	}
	d.say("The whole fleet has v2 again.")
	for _, args := range [][]string{{"rollout", "history", "shop", "-n", "fleet"}, {"rollout", "status", "shop", "-n", "fleet"}} {
		if err := d.satchel(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// inRun wants so many clusters of a wave to be updated in a run that is not complete.
func inRun(name string, updated int32) func(*v1alpha1.BundleRollout) bool {
	return func(o *v1alpha1.BundleRollout) bool {
		current, update := o.Status.CurrentRevision, o.Status.UpdateRevision
		return current != nil && update != nil && current.Digest != update.Digest && inWave(name, updated)(o)
	}
}
