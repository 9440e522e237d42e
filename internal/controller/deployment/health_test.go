// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// sick are templates of Pods that cannot become ready, with what the message has
// to name.
var sick = map[string]struct{ labels, spec, says string }{
	"unschedulable": {spec: "nodeSelector: {example.org/there-is: none}", says: "didn't match"},
	"pending":       {labels: "annotations: {" + controlplane.PodAnnotation + ": " + controlplane.PodPending + "}", says: ": is scheduled and has not started"},
	"crashing":      {labels: "annotations: {" + controlplane.PodAnnotation + ": " + controlplane.PodCrash + "}", says: ": container main keeps crashing with exit code 1"},
}

// sickWorkload is a workload with additions to its Pod template.
func sickWorkload(metadata, spec string) *fstest.MapFile {
	manifest := strings.Replace(string(workload("web", "example.org/web:1").Data), "    spec:", "    spec:\n      "+spec, 1)
	return file(strings.Replace(manifest, "metadata: {labels: {app: web}}", "metadata:\n      labels: {app: web}\n      "+metadata, 1))
}

func TestF29CauseDownToThePod(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, c := range sick {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			r.publish(t, namespace, "app", "v1", fstest.MapFS{"b.yaml": sickWorkload(c.labels, c.spec)})
			key := r.deploy(t, namespace, "app", both(quick, func(d *v1alpha1.BundleDeployment) {
				d.Spec.Health.Timeout = v1alpha1.Duration{Duration: 3 * time.Second}
			}))
			r.until(t, key, "on its way", func(d *v1alpha1.BundleDeployment) bool {
				return conditions.IsUnknown(d, "Ready") && conditions.GetReason(d, "Ready") == v1alpha1.ReasonHealthProgressing &&
					conditions.IsTrue(d, "Reconciling")
			})
			d := r.unready(t, key, v1alpha1.ReasonHealthFailed)
			message := conditions.GetMessage(d, "Ready")
			if !strings.Contains(message, "Deployment.apps "+namespace+"/web") || !strings.Contains(message, c.says) {
				t.Errorf("the message does not name the cause %q: %s", c.says, message)
			}
			t.Log(message)
		})
	}
}

func TestF29NewRevisionSupersedesAWait(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"b.yaml": sickWorkload("", "nodeSelector: {example.org/there-is: none}")})
	key := r.deploy(t, namespace, "app", nil) // the timeout is five minutes
	r.until(t, key, "waiting for health", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.GetReason(d, "Ready") == v1alpha1.ReasonHealthProgressing && d.Status.Applied.Revision == first.Revision
	})
	time.Sleep(3 * time.Second) // the looks are seconds apart by now
	began := time.Now()
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"b.yaml": workload("web", "example.org/web:2")})
	r.until(t, key, "the second revision is applied", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Applied.Revision == second.Revision
	})
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("took %s until the new revision was applied, want at most 5 s", took)
	}
	d := r.ready(t, key, second.Revision)
	if d.Status.Healthy.Revision != second.Revision {
		t.Errorf("last healthy is %s", d.Status.Healthy.Revision)
	}
}

// A workload that is deleted between the comparison with the cluster and the health
// check is recreated long before the interval is over.
func TestWorkloadDeletedBeforeItsHealthIsReadIsPutBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"b.yaml": workload("web", "example.org/web:1")})
	key := r.deploy(t, namespace, "app", rarely)
	r.ready(t, key, published.Revision)
	web := object("apps/v1", "Deployment", namespace, "web")
	var once sync.Once
	s := r.drive(t, key, func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			whole := !strings.Contains(request.Header.Get("Accept"), "PartialObjectMetadata") // what is compared is metadata
			if request.Method == http.MethodGet && whole && strings.HasSuffix(request.URL.Path, "/deployments/web") {
				once.Do(func() { r.delete(t, web.DeepCopy()) })
			}
			return next.RoundTrip(request)
		})
	})
	s.now = s.now.Add(time.Hour) // the time to become healthy is over
	result := s.reconcile(t)
	d := s.deployment(t)
	if r.get(t, web.DeepCopy()) || !conditions.IsUnknown(d, "Ready") || !strings.Contains(conditions.GetMessage(d, "Ready"), "it does not exist") {
		t.Errorf("a workload that was deleted just now is no failure:\n%s", describe(d))
	}
	if result.RequeueAfter > 5*time.Second {
		t.Errorf("comes back after %s", result.RequeueAfter)
	}
	s.reconcile(t)
	if r.get(t, web.DeepCopy()) {
		t.Error("it was put back before the pause for retries was over")
	}
	s.now = s.now.Add(time.Minute)
	s.reconcile(t)
	r.must(t, web)
	s.ready(t)
}

func TestRepairedWorkloadIsProgressingNotFailed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	published := r.publish(t, namespace, "app", "v1", fstest.MapFS{"b.yaml": workload("web", "example.org/web:1")})
	key := r.deploy(t, namespace, "app", both(quick, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Health.Timeout = v1alpha1.Duration{Duration: 4 * time.Second}
	}))
	seen := r.record(t, key)
	r.ready(t, key, published.Revision)
	time.Sleep(5 * time.Second) // the time to become healthy is over
	web := r.must(t, object("apps/v1", "Deployment", namespace, "web"))
	uid := web.GetUID()
	r.delete(t, web)
	r.until(t, key, "Ready with another Deployment", func(d *v1alpha1.BundleDeployment) bool {
		return r.get(t, web) && web.GetUID() != uid && conditions.IsTrue(d, "Ready")
	})
	for _, d := range seen() {
		if conditions.IsFalse(d, "Ready") && conditions.GetReason(d, "Ready") == v1alpha1.ReasonHealthFailed {
			t.Errorf("a repair was reported as a failure:\n%s", describe(d))
		}
	}
}
