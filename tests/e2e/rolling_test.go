// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A rolling update of two replicas of the deployment controller, as a Deployment does it: a new replica starts, an old one is
// told to end, twice. Caches are empty, as on the volume of a new Pod. An object that is deleted at any point comes back, and
// the objects of the bundles are written for nothing else.
func TestRollingUpdateOfTwoReplicas(t *testing.T) {
	r := newRig(t)
	r.Kill(deploymentController)
	t.Cleanup(func() {
		if err := r.Start(deploymentController); err != nil {
			t.Error(err)
		}
	})
	l := leaseOf()
	namespace := r.Namespace(t)
	replica := func(name string) *instance {
		return r.deployments(t, namespace+"-"+name, nil, l.arguments()...)
	}
	olds := []*instance{replica("old-1"), replica("old-2")}
	var keys []client.ObjectKey
	for i := range 10 {
		name := fmt.Sprintf("app-%d", i)
		keys = append(keys, r.Deploy(t, namespace, name, r.Push(t, "rolling-"+name+":v1", configMaps(name, 4)), nil))
	}
	for _, key := range keys {
		r.Ready(t, key)
	}
	r.waitForNoWrites(t, namespace)
	mark := r.mark(t)
	restored := 0
	restore := func() {
		lost := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("app-%d-00", restored)}}
		restored++
		began := time.Now()
		if err := r.Admin.Delete(t.Context(), lost); err != nil {
			t.Fatal(err)
		}
		r.Eventually(t, t.Context(), "the deleted object is back", func(ctx context.Context) (bool, string) {
			err := r.Admin.Get(ctx, client.ObjectKeyFromObject(lost), &corev1.ConfigMap{})
			return err == nil, fmt.Sprint(err)
		})
		t.Logf("a deleted object is back after %s", time.Since(began).Round(10*time.Millisecond))
	}
	var last []*instance
	for i, old := range olds {
		last = append(last, replica(fmt.Sprintf("new-%d", i+1)))
		if took, err := old.end(t); err != nil || took > 20*time.Second {
			t.Errorf("%s ended after %s: %v", old.name, took, err)
		}
		restore()
	}
	for _, key := range keys {
		r.Ready(t, key)
	}
	r.waitForNoWrites(t, namespace)
	var written []string
	for _, write := range r.writes(t, mark, namespace) {
		if strings.Contains(write, "/configmaps/app-") {
			written = append(written, write)
		}
	}
	if len(written) != restored {
		t.Errorf("%d writes of objects, want one for each of the %d that were deleted:\n%s", len(written), restored, strings.Join(written, "\n"))
	}
	for _, key := range keys {
		r.Remove(t, key)
	}
	for _, replica := range last {
		replica.leave()
	}
}
