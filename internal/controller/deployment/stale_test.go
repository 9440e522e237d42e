// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// lagging is a cache filled by an outdated API server: it has an old version of a source, or of a deployment.
type lagging struct {
	client.Client
	source     *v1alpha1.BundleSource
	deployment *atomic.Pointer[v1alpha1.BundleDeployment]
}

func (l lagging) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	switch into := into.(type) {
	case *v1alpha1.BundleSource:
		if l.source != nil && key == client.ObjectKeyFromObject(l.source) {
			l.source.DeepCopyInto(into)
			return nil
		}
	case *v1alpha1.BundleDeployment:
		if l.deployment == nil {
			break
		}
		if old := l.deployment.Load(); old != nil && key == client.ObjectKeyFromObject(old) {
			old.DeepCopyInto(into)
			return nil
		}
	}
	return l.Client.Get(ctx, key, into, options...)
}

// F15: after a restart the list of BundleSources comes from an outdated API server. The older
// revision is not applied, and objects of the newer one are not pruned; also if the list has the
// source from before its first fetch.
func TestF15StaleListOfSources(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, unfetched := range map[string]bool{"older revision": false, "not fetched yet": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
			key := r.deploy(t, namespace, "app", rarely)
			r.ready(t, key, first.Revision)
			var old v1alpha1.BundleSource
			if err := r.admin.Get(t.Context(), key, &old); err != nil {
				t.Fatal(err)
			}
			if unfetched {
				old.Status = v1alpha1.BundleSourceStatus{ObservedGeneration: -1}
			}
			second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two"), "b.yaml": configMap("b", "two")})
			before := r.ready(t, key, second.Revision)

			d := r.drive(t, key, nil)
			d.cached = func(own client.Client) client.Client { return lagging{Client: own, source: &old} }
			mark := r.mark(t)
			d = d.again(t, nil)
			d.reconcile(t)
			after, _ := d.ready(t)
			if after.Status.Applied.Revision != second.Revision {
				t.Errorf("applied %s, want %s", after.Status.Applied.Revision, second.Revision)
			}
			r.holds(t, namespace, "a", "two")
			r.holds(t, namespace, "b", "two")
			for _, e := range r.impersonated(t, mark, namespace) {
				if isWrite(e) {
					t.Errorf("written: %s", e)
				}
			}
			if len(after.Status.History) != len(before.Status.History) {
				t.Errorf("the history went from %d to %d revisions", len(before.Status.History), len(after.Status.History))
			}
		})
	}
}

// threeMaps is a bundle of ConfigMaps with one value.
func threeMaps(value string) fstest.MapFS {
	files := fstest.MapFS{}
	for i := range 3 {
		name := fmt.Sprint("m", i)
		files[name+".yaml"] = configMap(name, value)
	}
	return files
}

// drivenMaps is a deployment of three ConfigMaps that a test reconciles itself.
func (r *rig) drivenMaps(t *testing.T, namespace string) client.ObjectKey {
	t.Helper()
	r.publish(t, namespace, "app", "v1", threeMaps("one"))
	key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
		rarely(d)
		d.Labels = map[string]string{driven: ""}
	})
	t.Cleanup(func() { r.undrive(t, key) })
	return key
}

// A reconcile that failed, or ended while the bundle was converted, has written the status. The next one waits until the cache
// has that: from the older copy it would plan and try everything for a status write that is refused.
func TestNothingIsPlannedFromACopyOlderThanTheLastWrite(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, tc := range map[string]struct {
		reason string
		second fstest.MapFS
		began  func(*driver)
	}{
		"failed":     {"the status says why", fstest.MapFS{"web.yaml": badService}, func(*driver) {}},
		"converting": {"the status says that", threeMaps("two"), func(d *driver) { d.DoNotWaitForConversions() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			key := r.drivenMaps(t, namespace)
			var cached atomic.Pointer[v1alpha1.BundleDeployment]
			var requests atomic.Int64
			d := r.drive(t, key, nil)
			d.cached = func(own client.Client) client.Client { return lagging{Client: own, deployment: &cached} }
			d = d.again(t, func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(request *http.Request) (*http.Response, error) {
					requests.Add(1)
					return next.RoundTrip(request)
				})
			})
			old, _ := d.ready(t)
			r.publish(t, namespace, "app", "v2", tc.second)
			tc.began(d)
			if _, err := d.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			if now := d.deployment(t); now.ResourceVersion == old.ResourceVersion {
				t.Fatalf("%s: nothing was written\n%s", tc.reason, describe(now))
			}
			third := r.publish(t, namespace, "app", "v3", threeMaps("three"))
			cached.Store(old)
			before := requests.Load()
			result, err := d.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			if err != nil || result.RequeueAfter == 0 || result.RequeueAfter > time.Second {
				t.Errorf("the next reconcile is due in %s (%v), want soon", result.RequeueAfter, err)
			}
			if n := requests.Load() - before; n > 0 {
				t.Errorf("%d requests were sent for a plan from an outdated copy", n)
			}
			cached.Store(nil)
			r.eventually(t, t.Context(), "the third revision is applied", func(context.Context) (bool, string) {
				found, _ := d.ready(t)
				return found.Status.Applied.Revision == third.Revision, describe(found)
			})
		})
	}
}

// The status is refused that records a plan before its first write, because another client changed the status meanwhile. The
// next reconcile decides again, but repeats no dry run, unless the spec was changed too.
func TestDryRunsAreNotRepeatedAfterARefusedStatus(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.BundleDeployment)
		want   int64
	}{
		"status":          {"spec, content and objects are the same", func(*v1alpha1.BundleDeployment) {}, 3},
		"status and spec": {"other permissions may count now", func(d *v1alpha1.BundleDeployment) { d.Spec.Interval = v1alpha1.Duration{Duration: 8000 * time.Hour} }, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			key := r.drivenMaps(t, namespace)
			var tried, refused atomic.Int64
			d := r.drive(t, key, nil)
			d = d.again(t, func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(request *http.Request) (*http.Response, error) {
					switch {
					case request.URL.Query().Has("dryRun"):
						tried.Add(1)
					case request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/bundledeployments/app/status") && tried.Load() > 0 && refused.Load() == 0:
						refused.Add(1)
						r.edit(t, key, tc.change)
						r.setHandled(t, key, "another")
					}
					return next.RoundTrip(request)
				})
			})
			d.ready(t)
			if n := tried.Load(); n > 0 {
				t.Fatalf("%d dry runs of an installation", n)
			}
			second := r.publish(t, namespace, "app", "v2", threeMaps("two"))
			r.eventually(t, t.Context(), "the second revision is applied", func(context.Context) (bool, string) {
				d.now = d.now.Add(time.Minute)
				d.reconcile(t)
				found := d.deployment(t)
				return isReady(found) && found.Status.Applied.Revision == second.Revision, describe(found)
			})
			if refused.Load() != 1 || tried.Load() != tc.want {
				t.Errorf("%s: %d dry runs, want %d (%d statuses were refused)", tc.reason, tried.Load(), tc.want, refused.Load())
			}
			third := r.publish(t, namespace, "app", "v3", threeMaps("three"))
			r.eventually(t, t.Context(), "the third revision is applied", func(context.Context) (bool, string) {
				d.reconcile(t)
				found := d.deployment(t)
				return found.Status.Applied.Revision == third.Revision, describe(found)
			})
			if tried.Load() != tc.want+3 {
				t.Errorf("another revision was tried %d times", tried.Load()-tc.want)
			}
		})
	}
}

// setHandled changes the status of a deployment as another client.
func (r *rig) setHandled(t *testing.T, key client.ObjectKey, at string) {
	t.Helper()
	var d v1alpha1.BundleDeployment
	if err := r.admin.Get(t.Context(), key, &d); err != nil {
		t.Error(err)
		return
	}
	before := d.DeepCopy()
	d.Status.LastHandledReconcileAt = at
	if err := r.admin.Status().Patch(t.Context(), &d, client.MergeFrom(before)); err != nil {
		t.Error(err)
	}
}
