// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// countWork counts the changes of one reconcile.
func (r *Reconciler) countWork(s *state) {
	for _, of := range []*state{s, s.kept} {
		if of == nil {
			continue
		}
		key := client.ObjectKeyFromObject(of.object)
		r.Work.Planned(of.decided.plan)
		r.Work.Written(key, of.delivered.applied)
		r.Work.Written(key, of.delivered.repaired.result())
		if of.delivered.pruned != nil {
			r.Work.Pruned(of.delivered.pruned.Deleted)
		}
	}
}

// showHeld exposes how many objects of the deployment are held, once a plan was made.
func (r *Reconciler) showHeld(s *state) {
	if s.decided.plan == nil || !s.reached[v1alpha1.PlannedCondition] {
		return
	}
	held := 0
	if s.decided.plan.Held != nil {
		held = len(s.decided.plan.Held.Objects)
	}
	r.Holds.Show(types.NamespacedName{Namespace: s.object.Namespace, Name: s.object.Name}, held)
}
