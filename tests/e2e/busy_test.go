// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/installation"
)

// T16: while the many and large deployments of a tenant are asked for reconciles all the time, those
// of another tenant are reconciled, and repaired, as fast as ever.
func TestT16NoisyDeployments(t *testing.T) {
	many, objects, samples := 20, 60, 20
	if full() {
		many, objects, samples = 200, 500, 100
	}
	r := newRig(t)
	victim, hostile := r.Namespace(t), r.Namespace(t)
	quietly := r.Deploy(t, victim, "victim", r.Push(t, "t16-victim:v1", configMaps("v", samples)), nil)
	r.Ready(t, quietly)
	quiet, repaired := r.reconciles(t, quietly, samples), r.repairs(t, victim, 0, samples/4)

	noise := r.crowd(t, hostile, many, objects)
	memory := r.resident(t, deploymentController)
	stop := r.asking(t, noise)
	busy, repairedBusy := r.reconciles(t, quietly, samples), r.repairs(t, victim, samples/2, samples/4)
	asks := stop()
	t.Logf("victim's p95 of a reconcile %s quiet, %s beside %d deployments of %d objects and %d requests to reconcile (%.2f times); of a repair %s and %s; %d MiB resident, %d before",
		quiet.Round(time.Millisecond), busy.Round(time.Millisecond), many, objects, asks, float64(busy)/float64(quiet),
		repaired.Round(time.Millisecond), repairedBusy.Round(time.Millisecond), r.resident(t, deploymentController)>>20, memory>>20)
	if busy > 12*quiet && busy > 2*time.Second {
		t.Errorf("the latency of a reconcile rose from %s to %s", quiet, busy)
	}
	if repairedBusy > 12*repaired && repairedBusy > 6*time.Second {
		t.Errorf("the latency of a repair rose from %s to %s", repaired, repairedBusy)
	}
	for _, key := range noise { // the noise itself is in order, too
		r.Ready(t, key)
	}
}

// crowd installs one bundle many times, each in a namespace of its own, and waits until all are ready.
func (r *rig) crowd(t *testing.T, namespace string, many, objects int) []client.ObjectKey {
	t.Helper()
	image := r.Push(t, "t16-noise:v1", configMaps("n", objects))
	var keys []client.ObjectKey
	for i := range many {
		name := fmt.Sprint("noise-", i)
		target := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name}}
		if err := r.Admin.Create(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Admin.Delete(context.WithoutCancel(t.Context()), target) })
		keys = append(keys, r.Deploy(t, namespace, name, image, func(d *v1alpha1.BundleDeployment) {
			d.Spec.Target.Namespace = target.Name
			d.Spec.Source.Interval = v1alpha1.Duration{Duration: time.Hour}
		}))
	}
	for _, key := range keys {
		r.Ready(t, key)
	}
	return keys
}

// reconciles is the 95th percentile of the time from a request to reconcile to its end.
func (r *rig) reconciles(t *testing.T, key client.ObjectKey, samples int) time.Duration {
	t.Helper()
	return slowest(samples, func() {
		r.handled(t, key, r.request(t, []client.ObjectKey{key}))
	})
}

// repairs is the 95th percentile of the time from the deletion of an object until it is back; each
// time it is another one, for what is deleted again and again is put back later.
func (r *rig) repairs(t *testing.T, namespace string, first, samples int) time.Duration {
	t.Helper()
	at := first
	return slowest(samples, func() {
		lost := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("v-%02d", at)}}
		at++
		if err := r.Admin.Delete(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
		r.Eventually(t, t.Context(), "the object is back", func(ctx context.Context) (bool, string) {
			err := r.Admin.Get(ctx, client.ObjectKeyFromObject(lost), &corev1.ConfigMap{})
			return err == nil, fmt.Sprint(err)
		})
	})
}

// slowest is the 95th percentile of how long something takes.
func slowest(samples int, do func()) time.Duration {
	var all []time.Duration
	for range samples {
		began := time.Now()
		do()
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all[len(all)*95/100]
}

// asking asks for a reconcile of some deployment a hundred times a second until it is stopped, and
// returns how often it did.
func (r *rig) asking(t *testing.T, keys []client.ObjectKey) (stop func() int) {
	t.Helper()
	config := r.CP.RESTConfig()
	config.QPS, config.Burst = -1, -1
	requester, err := installation.Client(config) // or those who measure would wait for the same client
	if err != nil {
		t.Fatal(err)
	}
	end, done := make(chan struct{}), make(chan int)
	go func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for count := 0; ; count++ {
			select {
			case <-end:
				done <- count
				return
			case <-ticker.C:
			}
			key := keys[count%len(keys)]
			d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, meta.ReconcileRequestAnnotation, count)
			_ = requester.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", patch))
		}
	}()
	return func() int { close(end); return <-done }
}
