// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// lagging is a cache filled by an outdated API server: it has an old version of a source.
type lagging struct {
	client.Client
	source *v1alpha1.BundleSource
}

func (l lagging) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if source, ok := into.(*v1alpha1.BundleSource); ok && key == client.ObjectKeyFromObject(l.source) {
		l.source.DeepCopyInto(source)
		return nil
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
			d.cached = func(own client.Client) client.Client { return lagging{own, &old} }
			mark := r.mark(t)
			d = d.again(t, nil)
			d.reconcile(t)
			after, _ := d.ready(t)
			if after.Status.LastAppliedRevision != second.Revision {
				t.Errorf("applied %s, want %s", after.Status.LastAppliedRevision, second.Revision)
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
