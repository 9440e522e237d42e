// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// TestAnnounced: Reconciling is written while a download takes long, and not for a short one; an artifact that is no longer
// published is withdrawn before.
func TestAnnounced(t *testing.T) {
	withdrawn, published := &meta.Artifact{Revision: "v1@sha256:1"}, &meta.Artifact{Revision: "v2@sha256:2"}
	for name, tc := range map[string]struct {
		change   func(*v1alpha1.BundleSource, *state)
		long     bool // the work waits for the write, or for its failure
		conflict bool // the source is changed before the write
		writes   int
		before   bool // the write comes before the work
		failed   bool
	}{
		"short":                   {},
		"long":                    {long: true, writes: 1},
		"long, changed meanwhile": {long: true, conflict: true, writes: 1, failed: true},
		"an artifact is lost": {
			change: func(o *v1alpha1.BundleSource, _ *state) { o.Status.Artifact = withdrawn }, writes: 1, before: true,
		},
		"an artifact is lost, changed meanwhile": {
			change: func(o *v1alpha1.BundleSource, _ *state) { o.Status.Artifact = withdrawn }, conflict: true, writes: 1, before: true, failed: true,
		},
		"a retry with a published artifact": {
			change: func(o *v1alpha1.BundleSource, s *state) {
				o.Status.Artifact, s.published = published, published
				pipeline.SetCondition(o, meta.ReadyCondition, metav1.ConditionFalse, "FetchFailed", "m")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				object, s := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}, &state{}
				if tc.change != nil {
					tc.change(object, s)
				}
				c, writes := statusWrites(t, object)
				s.object, s.parts = object, []fetch.Part{{Resolved: fetch.Resolved{Reference: "v1"}}}
				if tc.conflict {
					s.object.ResourceVersion = "1"
				}
				r := &Reconciler{writer: pipeline.StatusWriter{Client: c, Manager: FieldManager}}
				worked := false
				outcome, err := r.announced(t.Context(), s, func(ctx context.Context) (pipeline.Outcome, error) {
					worked = true
					if tc.before != (len(writes) > 0) {
						t.Errorf("%d writes before the work", len(writes))
					}
					if tc.long && tc.conflict {
						<-ctx.Done()
						return pipeline.Stop, ctx.Err()
					}
					if tc.long {
						writes <- <-writes // waits for it
					}
					return pipeline.Continue, errWork
				})
				if len(writes) != tc.writes || worked == (tc.before && tc.failed) {
					t.Errorf("%d writes; worked: %v", len(writes), worked)
				}
				if tc.failed != pipeline.IsStale(err) || !tc.failed && (!errors.Is(err, errWork) || outcome != pipeline.Continue) {
					t.Errorf("it ended with %v, %v", outcome, err)
				}
				var now v1alpha1.BundleSource
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), &now); err != nil {
					t.Fatal(err)
				}
				announced := tc.writes > 0 && !tc.failed
				if conditions.IsTrue(&now, meta.ReconcilingCondition) != announced || announced && s.object.ResourceVersion != now.ResourceVersion {
					t.Errorf("the source is %+v, known is version %s", now, s.object.ResourceVersion)
				}
				if announced && (now.Status.Artifact != nil || conditions.GetMessage(&now, meta.ReconcilingCondition) != "fetching v1") {
					t.Errorf("the status is %+v", now.Status)
				}
			})
		})
	}
}

var errWork = errors.New("of the work")

// statusWrites is a client with one source, and what it writes: one value for each attempt.
func statusWrites(t *testing.T, object *v1alpha1.BundleSource) (client.Client, chan struct{}) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	writes := make(chan struct{}, 10)
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(object).WithObjects(object.DeepCopy()).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
				defer func() { writes <- struct{}{} }()
				return c.SubResource(sub).Patch(ctx, o, patch, options...)
			},
		}).Build()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	return c, writes
}
