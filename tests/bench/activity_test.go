// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// noted is an annotation that another client writes.
const noted = "example.org/noted"

// pace is how often others do something.
const pace = 100 * time.Millisecond

// activity makes, for a while, changes that other clients may make: it scales workloads as an
// autoscaler does, writes their status, annotates ConfigMaps. None of them may be undone,
// and other objects must not be written. A write of another client that changed no visible
// field of an object may be answered by one apply an interval that changes nothing.
func (d *drifting) activity(t *testing.T, period time.Duration) {
	t.Helper()
	var scaled, annotated []target
	for _, o := range d.objects {
		if o.kind == workloads {
			scaled = append(scaled, o)
		} else if len(annotated) < 20 {
			annotated = append(annotated, o)
		}
	}
	mark, began, acts := d.mark(t), time.Now(), 0
	replicas, notes := map[target]int64{}, map[target]string{}
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for ; time.Since(began) < period; <-tick.C {
		acts++
		workload := scaled[d.random.IntN(len(scaled))]
		switch acts % 3 {
		case 0:
			replicas[workload] = 1 + d.random.Int64N(3)
			d.scale(t, workload, replicas[workload])
		case 1:
			d.busy(t, workload, acts)
		default:
			o := annotated[d.random.IntN(len(annotated))]
			notes[o] = fmt.Sprint(acts)
			d.annotate(t, o, notes[o])
		}
	}
	time.Sleep(bookkeeping) // to see that nothing is written takes time
	d.checkActivity(t, replicas, notes)
	repairs := d.seen.writtenSince(began)
	applied, ofWorkloads := d.writes(t, mark), 0
	for name := range applied {
		if strings.HasPrefix(name, workloads.resource) {
			ofWorkloads++
		}
	}
	t.Logf("false repairs in %s with %d writes of status, scale and annotations by others: %d; applies that changed nothing: %d, of which %d of workloads",
		period, acts, len(repairs), len(applied), ofWorkloads)
	if len(repairs) > 0 {
		t.Errorf("written although nothing of ours was changed: %v", repairs)
	}
	for name, n := range applied {
		if n > 1 {
			t.Errorf("%s was applied %d times, want at most once an interval", name, n)
		}
	}
}

// checkActivity wants what others wrote to be as they wrote it.
func (d *drifting) checkActivity(t *testing.T, replicas map[target]int64, notes map[target]string) {
	t.Helper()
	for o, n := range replicas {
		if got := d.seen.last(o).replicas; got != n {
			t.Errorf("%s has %d replicas, want the %d of the autoscaler", o, got, n)
		}
	}
	for o, note := range notes {
		if got := d.seen.last(o).note; got != note {
			t.Errorf("%s is annotated %q, want %q", o, got, note)
		}
	}
}

func (d *drifting) scale(t *testing.T, o target, replicas int64) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := d.admin.SubResource("scale").Patch(t.Context(), o.in(d.namespace), patch, client.FieldOwner("autoscaler")); err != nil {
		t.Fatal(err)
	}
}

// busy writes a condition, beside those of the controller of the workload.
func (d *drifting) busy(t *testing.T, o target, n int) {
	t.Helper()
	patch := client.RawPatch(types.StrategicMergePatchType,
		fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Busy","status":"True","message":"%d"}]}}`, n))
	if err := d.admin.Status().Patch(t.Context(), o.in(d.namespace), patch, client.FieldOwner("observer")); err != nil {
		t.Fatal(err)
	}
}

func (d *drifting) annotate(t *testing.T, o target, note string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, noted, note))
	if err := d.admin.Patch(t.Context(), o.in(d.namespace), patch, client.FieldOwner("other")); err != nil {
		t.Fatal(err)
	}
}
