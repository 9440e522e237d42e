// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// edits is how many objects are edited, one after another.
const edits = 50

// BenchmarkEdits is what the correction of one edit costs in deployments of 1,000 and 10,000
// ConfigMaps: it should not depend on their number.
func BenchmarkEdits(b *testing.B) {
	r := newRig(b)
	for _, n := range sizes(1000, 10000) {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				measured := measureEdits(b, r, n, edits)
				printTable(b, fmt.Sprintf("%d edits, one after another, of %d ConfigMaps", edits, n), []row{measured})
				b.ReportMetric(measured.cpu/edits*1000, "cpu-ms/edit")
				b.ReportMetric(float64(measured.requests.all())/edits, "requests/edit")
				b.ReportMetric((measured.took-bookkeeping).Seconds()/edits*1000, "ms/edit")
			}
		})
	}
}

// measureEdits installs a deployment of n ConfigMaps, edits some of them one after another, and waits
// each time until the edit is corrected. The first edit, which prepares what the others use, is not measured.
func measureEdits(t testing.TB, r *rig, n, count int) row {
	t.Helper()
	files, _ := manyMaps(n, nil)
	namespace := r.namespace(t)
	r.publish(t, namespace, "v1", files)
	if err := r.deploy(t.Context(), namespace, "app"); err != nil {
		t.Fatal(err)
	}
	r.waitAll(t, namespace, 1, isReady)
	r.edit(t, namespace, n/2)
	time.Sleep(bookkeeping)
	measured := r.measure(t, fmt.Sprintf("%d edits corrected", count), func() {
		for i := range count {
			r.edit(t, namespace, (i*37+1)%n)
		}
		time.Sleep(bookkeeping)
	})
	r.clear(t, namespace)
	return measured
}

// edit changes one ConfigMap and waits until that is corrected.
func (r *rig) edit(t testing.TB, namespace string, i int) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("c%05d", i)}}
	edit := client.RawPatch(types.MergePatchType, []byte(`{"data":{"c":"edited"}}`))
	if err := r.admin.Patch(t.Context(), object, edit, client.FieldOwner("another-client")); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := r.admin.Get(ctx, client.ObjectKeyFromObject(object), object)
		return object.Data["c"] != "edited", err
	})
	if err != nil {
		t.Fatalf("waiting until the edit of %s is corrected: %v", object.Name, err)
	}
}
