// SPDX-License-Identifier: Apache-2.0

package trigger_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/trigger"
)

// The annotation does not change the generation, and wakes a deployment that is being deleted all the same.
func TestAbandonDemandedWakes(t *testing.T) {
	deployment := func(deleted bool, value string) *v1alpha1.BundleDeployment {
		d := &v1alpha1.BundleDeployment{}
		if deleted {
			d.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		if value != "" {
			d.Annotations = map[string]string{v1alpha1.AbandonAnnotation: value}
		}
		return d
	}
	for name, tc := range map[string]struct {
		before, after *v1alpha1.BundleDeployment
		want          bool
	}{
		"set":               {deployment(true, ""), deployment(true, "now"), true},
		"the same":          {deployment(true, "now"), deployment(true, "now"), false},
		"not being deleted": {deployment(false, ""), deployment(false, "now"), false},
	} {
		if got := trigger.AbandonDemanded().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
