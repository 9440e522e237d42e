// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// A status that was decided on an outdated copy is written only if nothing but metadata changed since.
func TestT16StatusIsSentAgainWhereOnlyMetadataMoved(t *testing.T) {
	cases := map[string]struct {
		reason    string
		meanwhile func(context.Context, client.Client, *v1alpha1.BundleSource) error
		written   bool
	}{
		"nothing": {"the usual case", func(context.Context, client.Client, *v1alpha1.BundleSource) error { return nil }, true},
		"an annotation": {"a client that annotates ten times a second discarded every second reconcile", func(ctx context.Context, c client.Client, o *v1alpha1.BundleSource) error {
			o.Annotations = map[string]string{"example.org/note": "b"}
			return c.Update(ctx, o)
		}, true},
		"the spec": {"the decision is about another one", func(ctx context.Context, c client.Client, o *v1alpha1.BundleSource) error {
			o.Generation++
			return c.Update(ctx, o)
		}, false},
		"the status": {"another writer, or a stale read of our own", func(ctx context.Context, c client.Client, o *v1alpha1.BundleSource) error {
			o.Status.ObservedGeneration = 7
			return c.Status().Update(ctx, o)
		}, false},
		"recreated": {"another object of the same name", func(ctx context.Context, c client.Client, o *v1alpha1.BundleSource) error {
			if err := c.Delete(ctx, o); err != nil {
				return err
			}
			o.UID, o.ResourceVersion = "other", ""
			return c.Create(ctx, o)
		}, false},
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stored := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "one", Generation: 1}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).WithStatusSubresource(stored).Build()
			key := client.ObjectKeyFromObject(stored)
			read := func() *v1alpha1.BundleSource {
				o := &v1alpha1.BundleSource{}
				if err := c.Get(t.Context(), key, o); err != nil {
					t.Fatal(err)
				}
				return o
			}
			before, other := read(), read()
			object := before.DeepCopy()
			pipeline.SetCondition(object, "Ready", metav1.ConditionTrue, "Succeeded", "m")
			if err := tc.meanwhile(t.Context(), c, other); err != nil {
				t.Fatal(err)
			}
			err := pipeline.StatusWriter{Client: c, Reader: c, Manager: "m"}.Write(t.Context(), before, object)
			if (err == nil) != tc.written || err != nil && !pipeline.IsStale(err) {
				t.Errorf("%s: %v", tc.reason, err)
			}
			now := read()
			if (len(now.Status.Conditions) == 1) != tc.written {
				t.Errorf("%s: the conditions are %v", tc.reason, now.Status.Conditions)
			}
			if tc.written && object.ResourceVersion != now.ResourceVersion {
				t.Errorf("it carries version %s, and %s is stored", object.ResourceVersion, now.ResourceVersion)
			}
		})
	}
}
