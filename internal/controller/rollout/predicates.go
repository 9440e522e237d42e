// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// statusLost passes updates that emptied a status, as a restore from a backup does.
func statusLost() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.BundleRollout)
			after, fine := e.ObjectNew.(*v1alpha1.BundleRollout)
			return ok && fine && len(before.Status.Conditions) > 0 && len(after.Status.Conditions) == 0
		},
	}
}

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
