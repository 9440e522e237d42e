// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// StatusLost passes updates that emptied a status, as a restore from a backup does. Creations and deletions pass, too.
func StatusLost() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(conditions.Getter)
			after, fine := e.ObjectNew.(conditions.Getter)
			return ok && fine && len(before.GetConditions()) > 0 && len(after.GetConditions()) == 0
		},
	}
}

// CreatedOrDeleted passes no updates.
func CreatedOrDeleted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}
