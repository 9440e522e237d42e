// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"k8s.io/apimachinery/pkg/types"
)

// countWork counts the changes of one reconcile.
func (r *Reconciler) countWork(s *state) {
	for _, of := range []*state{s, s.kept} {
		if of == nil {
			continue
		}
		key := of.Key()
		r.Work.Planned(of.decided.Plan)
		r.Work.Written(key, of.delivered.Applied)
		r.Work.Written(key, of.delivered.Repaired.Result())
		if of.delivered.Pruned != nil {
			r.Work.Pruned(of.delivered.Pruned.Deleted)
		}
	}
}

// showHeld exposes how many objects of the deployment are held, once a plan was made.
func (r *Reconciler) showHeld(s *state) {
	if s.decided.Plan == nil || !s.decided.Accepted {
		return
	}
	held := 0
	if s.decided.Plan.Held != nil {
		held = len(s.decided.Plan.Held.Objects)
	}
	r.Holds.Show(types.NamespacedName{Namespace: s.Object.Namespace, Name: s.Object.Name}, held)
}
