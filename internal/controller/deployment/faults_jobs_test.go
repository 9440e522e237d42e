// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// once is a Job that deletes itself some time after it ended.
func once(name, image string) *fstest.MapFile {
	return file(`apiVersion: batch/v1
kind: Job
metadata: {name: ` + name + `}
spec:
  suspend: true
  ttlSecondsAfterFinished: 100
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: ` + image + `}]
`)
}

// completes has a Job end well, as its controller says it.
func (r *rig) completes(t *testing.T, job *unstructured.Unstructured) {
	t.Helper()
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind string) map[string]any {
		return map[string]any{"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now}
	}
	r.must(t, job)
	before := job.DeepCopy()
	job.Object["status"] = map[string]any{
		"startTime": now, "completionTime": now, "succeeded": int64(1), "conditions": []any{condition("SuccessCriteriaMet"), condition("Complete")},
	}
	if err := r.admin.Status().Patch(t.Context(), job, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// exists is a check that an object is there.
func (r *rig) exists(o *unstructured.Unstructured) func(context.Context) (bool, string) {
	return func(ctx context.Context) (bool, string) {
		err := r.admin.Get(ctx, client.ObjectKeyFromObject(o), o)
		return err == nil, fmt.Sprint(err)
	}
}

// expires deletes a Job, as the controller for its ttlSecondsAfterFinished does.
func (r *rig) expires(t *testing.T, job *unstructured.Unstructured) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	if err := r.admin.Delete(t.Context(), job, &client.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	r.gone(t, job)
}

// F37: a Job that was seen to complete is not created again when its time to live is over:
// not at the interval, not because a watch tells that it is gone, not after a restart. It runs
// again with other content. One that was deleted before it completed is put back.
func TestF37JobRunsOncePerContent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	files := func(image, value string) fstest.MapFS {
		return fstest.MapFS{"job.yaml": once("migrate", image), "a.yaml": configMap("a", value)}
	}
	first := r.publish(t, namespace, "app", "v1", files("example.org/job:v1", "one"))
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	job := object("batch/v1", "Job", namespace, "migrate")
	uid := r.must(t, job).GetUID()
	r.expires(t, job)
	r.eventually(t, t.Context(), "what did not complete is put back", r.exists(job))
	if r.must(t, job).GetUID() == uid {
		t.Fatal("it was not deleted")
	}

	r.completes(t, job)
	r.until(t, key, "the Job counts as done", func(d *v1alpha1.BundleDeployment) bool {
		for _, entry := range d.Status.Inventory.Entries {
			if entry.D {
				return true
			}
		}
		return false
	})
	mark := r.mark(t)
	r.expires(t, job)
	r.looks(t, namespace, "installer", 4) // intervals
	r.ready(t, key, first.Revision)
	r.patch(t, aConfigMap(namespace, "a"), `{"data":{"value":"theirs"}}`)
	r.untilValue(t, namespace, "a", "one")
	second := r.publish(t, namespace, "app", "v2", files("example.org/job:v1", "two"))
	r.ready(t, key, second.Revision)
	d := r.drive(t, key, nil) // as after a restart
	d.ready(t)
	if created := r.created(t, namespace, mark); r.get(t, job) {
		t.Errorf("the Job runs again: %v", created)
	}

	third := r.publish(t, namespace, "app", "v3", files("example.org/job:v2", "two"))
	r.until(t, key, "another content is applied", func(d *v1alpha1.BundleDeployment) bool { return d.Status.Applied.Revision == third.Revision })
	r.must(t, job)
}
