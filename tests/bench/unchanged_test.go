// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"testing"
)

// reconciles is how often an unchanged deployment is compared with the cluster.
const reconciles = 10

// BenchmarkUnchanged is what a requested reconcile costs if nothing changed, in deployments of 1,000, 10,000 and 20,000 ConfigMaps.
// It is repeated, because the CPU time of a single one is too short for the clock of the kernel and for a profile.
func BenchmarkUnchanged(b *testing.B) {
	r := newRig(b)
	for _, n := range sizes(1000, 10000, 20000) {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				measured := measureUnchanged(b, r, n)
				printTable(b, fmt.Sprintf("%d reconciles of %d ConfigMaps, nothing changed", reconciles, n), []row{measured})
				b.ReportMetric(measured.cpu/reconciles*1000, "cpu-ms/reconcile")
				b.ReportMetric(float64(measured.requests.all())/reconciles, "requests/reconcile")
				b.ReportMetric(measured.peak, "MiB")
			}
		})
	}
}

// measureUnchanged installs a deployment of n ConfigMaps and has it compared several times. The first reconcile after the
// installation, which may store what was left to store, is not measured.
func measureUnchanged(t testing.TB, r *rig, n int) row {
	t.Helper()
	files, _ := manyMaps(n, nil)
	namespace := r.namespace(t)
	r.publish(t, namespace, "v1", files)
	if err := r.deploy(t.Context(), namespace, "app"); err != nil {
		t.Fatal(err)
	}
	r.waitAll(t, namespace, 1, isReady)
	r.again(t, namespace, "first")
	measured := r.measure(t, "reconciles, nothing changed", func() {
		for i := range reconciles {
			r.again(t, namespace, fmt.Sprint(i))
		}
	})
	if measured.requests.objects != 0 {
		t.Errorf("%d requests for single objects when nothing changed, want 0: %v", measured.requests.objects, measured.requests.byVerb)
	}
	r.clear(t, namespace)
	return measured
}
