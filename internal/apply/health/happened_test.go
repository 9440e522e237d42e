// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// For objects without Pods events explain the state; the message does not change with each attempt.
func TestCauseInEvents(t *testing.T) {
	event := func(kind, at, message string) unstructured.Unstructured {
		return *parse(t, `{apiVersion: v1, kind: Event, metadata: {name: e}, type: `+kind+`, lastTimestamp: "`+at+`", message: '`+message+`'}`)
	}
	quota := func(name, at string) unstructured.Unstructured {
		return event("Warning", at, `Error creating: pods "`+name+`" is forbidden: exceeded quota: none, requested: pods=1.`)
	}
	const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: fill, namespace: shop, uid: u}, spec: {selector: {matchLabels: {a: b}}}, status: {startTime: "2026-01-01T00:00:00Z"}}`
	const claim = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: disk, namespace: shop, uid: u}, status: {phase: Pending}}`
	for name, c := range map[string]struct {
		reason, object string
		events         []unstructured.Unstructured
		want           string
	}{
		"quota": {
			"the newest counts, without the ending of a name", job,
			[]unstructured.Unstructured{quota("fill-abcde", "2026-01-01T00:00:01Z"), event("Warning", "2026-01-01T00:00:00Z", "older")},
			`1 of 1 object is not healthy: Job.batch shop/fill: the Job has not completed yet: Error creating: pods "fill-..." is forbidden: exceeded quota: none, requested: pods=1`,
		},
		"claim": {
			"a warning counts before what is normal", claim,
			[]unstructured.Unstructured{event("Normal", "2026-01-01T00:00:09Z", "waiting"), event("Warning", "2026-01-01T00:00:00Z", "no such class")},
			"1 of 1 object is not healthy: PersistentVolumeClaim shop/disk: PVC is not Bound. phase: Pending: no such class",
		},
		"nothing": {
			"the object's own words stand", claim, nil, "1 of 1 object is not healthy: PersistentVolumeClaim shop/disk: PVC is not Bound. phase: Pending",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := check(t, &cluster{events: c.events}, c.object).Message(); got != c.want {
				t.Errorf("%s: got\n%s\nwant\n%s", c.reason, got, c.want)
			}
		})
	}
}
