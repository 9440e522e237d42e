// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// sourceChanged passes updates of a BundleSource that change what it publishes, or whether it is ready.
func sourceChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.BundleSource)
			after, fine := e.ObjectNew.(*v1alpha1.BundleSource)
			return !ok || !fine || before.Generation != after.Generation ||
				!equality.Semantic.DeepEqual(before.Status, after.Status)
		},
	}
}
