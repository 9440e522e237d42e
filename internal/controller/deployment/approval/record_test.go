// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// F59: an approval that was marked by a request of which the answer was lost is refused when the request is repeated. It is
// consumed by this plan all the same, and only a mark of another one is a conflict.
func TestF59MarkOfALostAnswer(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	conflict := apierrors.NewConflict(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "bundleapprovals"}, "yes", nil)
	for name, tc := range map[string]struct {
		reason  string
		carried bool      // out before it is refused
		by      time.Time // the mark of another request
		refused bool
	}{
		"lost answer":     {reason: "the mark is there", carried: true},
		"not carried out": {reason: "another client changed the approval", refused: true},
		"another mark":    {reason: "another plan has used it", by: now.Add(-time.Hour), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			one := &v1alpha1.BundleApproval{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "yes", UID: "1"}}
			if !tc.by.IsZero() {
				one.Status.ConsumedTime = &metav1.Time{Time: tc.by}
			}
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(one).WithStatusSubresource(one).Build()
			faulty := interceptor.NewClient(live, interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					if tc.carried {
						if err := c.SubResource(sub).Patch(ctx, o, patch, opts...); err != nil {
							return err
						}
					}
					return conflict
				},
			})
			var read v1alpha1.BundleApproval
			if err := live.Get(t.Context(), client.ObjectKeyFromObject(one), &read); err != nil {
				t.Fatal(err)
			}
			err := Approvals{Client: faulty, Live: live, Manager: "test"}.markConsumed(t.Context(), &read, now)
			if (err != nil) != tc.refused {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
